"""How a program behaves in production: instruments, detectors, alerts, logs, degradation."""
