"""Copies to the device beside the computation, and whether they pay."""
