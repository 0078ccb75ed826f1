"""An operator of a trace, written as a benchmark that runs without the program it came from."""
