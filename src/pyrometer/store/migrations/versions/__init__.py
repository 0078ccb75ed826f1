"""One file per change of the tables, named by its revision; a file that was released never changes."""
