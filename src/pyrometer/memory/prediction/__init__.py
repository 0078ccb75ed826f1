"""How much memory a step will take, before it runs: the same ledger from tensors without data."""
