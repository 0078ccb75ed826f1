"""Varying sizes with few compiled graphs: buckets, masks, batches of like length."""
