"""Recording what the compiler says of itself: from this process, or from the files that TORCH_TRACE leaves."""
