"""What one process or many do now, from the ticks that they write or send."""
