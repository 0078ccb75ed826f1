"""All that is said of a trace: one record per rank, the job that they make up, and the sentence that sums it up."""
