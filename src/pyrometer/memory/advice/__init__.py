"""What to change so that less memory is needed."""
