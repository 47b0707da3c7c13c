"""Pushy's mock of Apple's service: a server that we did not write (com.eatthepath:pushy, on the JVM)."""
