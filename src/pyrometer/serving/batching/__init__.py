"""When requests become a batch: a pure core without threads, clocks or tensors."""
