"""PYR1xx: the host, and waiting for devices."""
