"""What an operator must do at least: FLOP and bytes from the shapes that a trace records, one module per family."""
