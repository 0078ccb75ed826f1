"""Records as notebooks show them."""
