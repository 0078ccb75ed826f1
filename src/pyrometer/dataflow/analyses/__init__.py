"""Readings of a flow graph: each module has one pure function of the graph."""
