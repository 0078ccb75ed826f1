"""The contracts: each runs a workload and says whether it keeps a promise."""
