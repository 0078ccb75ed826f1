"""PYR5xx: kernels, precision and layout."""
