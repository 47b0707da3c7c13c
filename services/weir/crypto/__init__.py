"""Keys, boxes, authenticators, block encryption, certificates. Thin over PyNaCl and cryptography."""
