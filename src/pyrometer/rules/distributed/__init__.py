"""PYR6xx: several ranks."""
