"""Levers that compute in integers, or with fewer weights."""
