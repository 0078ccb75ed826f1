"""Levers that give the model to a compiler or to another runtime."""
