"""Reading a log of allocations: who holds what, when."""
