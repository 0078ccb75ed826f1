"""Models that another runtime computes: exported as tensors in, tensors out, and called like the model they stand for."""
