"""One rule per kind of change: each looks at a case, and says nothing where it would not lower the peak."""
