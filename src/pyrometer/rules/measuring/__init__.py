"""PYR0xx: measuring and reading wrongly."""
