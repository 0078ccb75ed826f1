"""Levers of a training step."""
