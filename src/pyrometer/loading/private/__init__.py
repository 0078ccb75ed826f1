"""What the loading room reads of torch's own, undocumented parts: one module per source, each says what is missing."""
