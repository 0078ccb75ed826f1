"""Activation checkpointing: which modules to compute again in the backward pass, so that a step fits into memory."""
