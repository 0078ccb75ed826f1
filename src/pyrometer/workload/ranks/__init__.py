"""Scripts of many ranks: each one observed as a script of its own, and brought together."""
