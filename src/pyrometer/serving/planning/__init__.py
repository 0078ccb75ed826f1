"""What a policy would do to arrivals, before anything is deployed."""
