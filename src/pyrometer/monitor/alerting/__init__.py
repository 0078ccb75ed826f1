"""Who is told of an alarm, how often, and by which way."""
