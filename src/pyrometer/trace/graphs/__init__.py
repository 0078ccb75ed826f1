"""Captured graphs: what was recorded while one was captured explains the kernels of each of its launches."""
