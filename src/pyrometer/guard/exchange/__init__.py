"""Results of other benchmark tools: read as history, and written for them."""
