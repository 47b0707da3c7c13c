"""The notification protocol (NTF), versions 1 to 3: its types and their bytes."""
