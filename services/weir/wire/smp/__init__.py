"""The SMP protocol: its commands, replies, handshake and transmissions."""
