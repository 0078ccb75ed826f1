"""Findings in the forms that people, editors and CI read: each a pure function of the result."""
