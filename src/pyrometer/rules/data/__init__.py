"""PYR3xx: how data arrives."""
