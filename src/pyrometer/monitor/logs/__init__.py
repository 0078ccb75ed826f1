"""Structured logs of the monitor: one line per event, and what many gigabytes of them say."""
