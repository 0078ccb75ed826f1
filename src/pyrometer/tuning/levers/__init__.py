"""Levers: one reversible change to a workload each, with its preconditions, its probe, and how exact it is."""
