"""What the names of events mean, in tables that are easy to extend."""
