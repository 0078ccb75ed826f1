"""How long: clocks, steady state, sampling, statistics, comparison."""
