"""Everything of torch's private interfaces that this room leans on, one module per source."""
