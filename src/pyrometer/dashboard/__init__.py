"""The store in a browser: a list of runs, their reports, comparisons and trends, and the runs that are going on."""
