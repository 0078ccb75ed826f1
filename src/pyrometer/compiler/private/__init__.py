"""The only place that touches private parts of torch's compiler; each source says whether this torch has it."""
