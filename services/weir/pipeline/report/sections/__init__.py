"""The sections of a router's part. A section is left out when gold has nothing for it."""
