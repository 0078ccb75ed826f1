"""Trying a configuration: in a process of its own, checked number by number, timed in turn with another."""
