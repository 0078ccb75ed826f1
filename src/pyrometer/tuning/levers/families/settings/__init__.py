"""Levers that set what holds for the whole process."""
