"""When what ran: sets of intervals, what was active, what a host thread was in, where a device had nothing to do, and why."""
