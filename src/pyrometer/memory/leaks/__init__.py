"""Whether memory grows without end, decided from what survives, and who keeps it."""
