"""What runs within the user's calls: two clock reads and one append, and one call of many looked at closely."""
