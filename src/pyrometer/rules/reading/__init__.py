"""Reading a profile in the order in which an expert does."""
