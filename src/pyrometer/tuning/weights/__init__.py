"""Advice on weights: which ones could be one, and which ones begin at an unfit scale."""
