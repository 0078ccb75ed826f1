"""One look at one target by everything that can observe it."""
