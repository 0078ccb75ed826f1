"""Steps without one of their places: what it returned before is handed out again, and all else runs."""
