"""What runs inside a script under observation."""
