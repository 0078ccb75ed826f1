"""One module per observer: `observe(work, seen, options)` adds its part to the evidence, or a note of why it cannot."""
