"""Batches: how large they may be, and smaller parts of them."""
