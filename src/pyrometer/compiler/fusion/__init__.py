"""What Inductor made of the graphs: fused groups, why neighbours stayed apart, buffers."""
