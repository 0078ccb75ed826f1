"""Guards, which of them failed, and what changed."""
