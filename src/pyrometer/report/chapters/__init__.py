"""Documents as lists of chapters, which the renderers lay out."""
