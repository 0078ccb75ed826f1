"""Several ranks of one job: each file is reduced to a small summary, and the summaries tell who waits for whom."""
