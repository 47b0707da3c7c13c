"""SMP clients: one connection with pending replies, and a small agent that keeps subscriptions over reconnections."""
