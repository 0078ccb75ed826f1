"""PYR4xx: what torch.compile did."""
