"""Batches through the model: a thread of its own, versions, shapes."""
