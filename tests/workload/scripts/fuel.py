"""A sibling module."""
AMOUNT = 12
