"""What had to wait for what: host threads, device streams and the dependencies between them, as integer arrays.

`graph.build` turns a linked trace into points and edges; `replay` runs time through them, forwards with changed
durations, backwards for slack, and along the edges that held the run up.
"""
