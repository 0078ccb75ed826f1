"""Levers of scripts on many ranks: DistributedDataParallel, its hooks, and FSDP2."""
