"""What compiling cost: phases, passes, caches, and the code that came out."""
