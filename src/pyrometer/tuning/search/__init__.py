"""Which levers to keep: one at a time against the best so far, then the winners against each other."""
