"""What changes a workload for a trial: modules behind checkpointing, batches in parts, and what it then computes."""
