"""How a program behaves in production: what its calls cost, whether its outputs are sound, who is told."""
