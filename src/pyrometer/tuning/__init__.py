"""What to change: shape buckets, checkpoint plans, batch sizes, loader settings, prefetching."""
