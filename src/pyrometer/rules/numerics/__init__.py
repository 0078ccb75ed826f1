"""PYR7xx: numbers that go wrong."""
