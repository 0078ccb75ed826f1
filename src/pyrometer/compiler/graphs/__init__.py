"""FX graphs at each stage, as records and as pictures."""
