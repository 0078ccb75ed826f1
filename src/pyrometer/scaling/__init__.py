"""What a training step would take on many ranks, from one machine."""
