"""What torch keeps to itself, one module per source; each says what an installation lacks."""
