"""One file per analysis: a function of a trace, listed by its decorator; adding one touches no other file."""
