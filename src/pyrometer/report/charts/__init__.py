"""Charts as SVG, drawn from records: horizontal positions in per cent, so that text keeps its size at any width."""
