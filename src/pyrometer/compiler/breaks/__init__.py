"""Where graphs broke, which frames were given up, and why."""
