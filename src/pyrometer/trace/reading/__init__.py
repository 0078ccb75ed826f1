"""From files to tables: any PyTorch trace, of any age, whole or damaged."""
