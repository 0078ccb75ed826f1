"""What to write instead: a rewrite for each common break."""
