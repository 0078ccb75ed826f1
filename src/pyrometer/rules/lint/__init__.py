"""Rules on source text: files, suppression, fixes, output."""
