"""Other formats: a trace for the tools that people know, with what was found in it."""
