"""Whether a new version is worse, safe or neither: tests that may be looked at after every observation."""
