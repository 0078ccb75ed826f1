"""What runs: one repeatable step and what a step is worth, targets from a file, and scripts under observation."""
