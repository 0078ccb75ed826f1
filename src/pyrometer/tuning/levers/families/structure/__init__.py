"""Levers that rewrite modules: what is folded, left out, or put in another's place."""
