"""A trace as it is drawn: slices and merged calls in columns, small enough to travel with a report."""
