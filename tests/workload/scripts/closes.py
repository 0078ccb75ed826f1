"""Closes all files that it did not open, as daemons do, and opens its own."""
import os

os.closerange(3, 1024)
files = [open(__file__) for _ in range(5)]
print([file.fileno() for file in files], len(files[0].read()) > 0)
