"""What is collected by itself when an alarm begins, while the problem still lasts."""
