"""What a record shows of the steady state: without its cold start, and only as long as it is complete at both ends."""
