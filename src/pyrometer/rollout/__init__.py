"""Letting a new version in by evidence: who answers, what is counted, when it may have more, and when it has to go."""
