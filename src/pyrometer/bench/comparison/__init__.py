"""Is one faster than the other? Paired blocks, decisions and verdicts."""
