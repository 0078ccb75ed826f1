"""Pruning: whole channels are taken out, which makes a model smaller and faster; single weights set to zero do not."""
