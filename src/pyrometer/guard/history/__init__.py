"""How a suite did from commit to commit: ratios to the adjacent commit, chained; where they change, and what proves it."""
