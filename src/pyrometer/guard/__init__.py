"""Did this commit make it worse: the gate of a pull request, and its history."""
