"""When a signal is no longer what it was: detectors, and the alarms that they raise."""
