"""Levers that change how tensors lie in memory."""
