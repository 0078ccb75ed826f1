"""What the text of a Python file says: names, values, what runs often, and edits; without importing torch."""
