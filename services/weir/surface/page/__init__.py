"""The server page: one HTML document and its assets."""
