"""The records of all analyses of a trace, which are read without them."""
