"""Whether the numbers are sound: infinities and NaN with their origin, gradients, precision, outputs beside a reference."""
