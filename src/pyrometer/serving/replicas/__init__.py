"""The server on a cluster: the same deployment, with its batcher, inside the replicas of Ray Serve."""
