"""Tuning a script on many ranks: launches that are held at the end of a step, asked, and compared in turns."""
