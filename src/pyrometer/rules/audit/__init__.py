"""The checklist: items with their evidence, and the score."""
