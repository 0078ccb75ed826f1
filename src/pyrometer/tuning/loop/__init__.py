"""A training loop that measures itself, survives a kill, and says what it changes."""
