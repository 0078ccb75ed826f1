"""PYR2xx: memory."""
