"""Where in the user's program an operator runs: its line, its module, and in the backward pass those of the forward one."""
