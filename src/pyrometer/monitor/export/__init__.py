"""Where ticks go: JSON lines, Prometheus, Redis, OpenTelemetry; none of them can hold up the monitor or the program."""
