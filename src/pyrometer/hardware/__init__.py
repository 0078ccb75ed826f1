"""What the machine can do: environment and fingerprint, conditions while measuring, peaks, roofline."""
