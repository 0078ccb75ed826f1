"""Watching allocations: every storage that operators make, from its birth to its death."""
