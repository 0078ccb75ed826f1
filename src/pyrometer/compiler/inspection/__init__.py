"""Running a workload to see what compiling it costs and brings."""
