"""The recipe: the levers that were proved, with their proof, in a file that can be applied to a fresh model."""
