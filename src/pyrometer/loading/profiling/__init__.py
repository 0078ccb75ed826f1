"""What a sample and a batch cost: time, lines, bytes, padding, repeated work, memory of the workers."""
