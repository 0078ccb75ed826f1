"""Many configurations at once: axes, cells in fresh processes, and which one to use."""
