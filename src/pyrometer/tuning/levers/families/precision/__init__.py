"""Levers that compute in fewer bits."""
