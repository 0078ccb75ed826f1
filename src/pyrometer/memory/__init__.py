"""Where the bytes go: ledger, prediction, leaks, snapshots, checkpoint planning."""
