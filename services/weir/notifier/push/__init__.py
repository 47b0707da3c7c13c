"""Push notifications: what is sent to devices, through whom, and how fast."""
