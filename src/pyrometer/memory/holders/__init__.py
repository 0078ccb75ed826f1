"""Who holds a tensor that should have died: the name in the user's words, the autograd graph behind it, and the fix."""
