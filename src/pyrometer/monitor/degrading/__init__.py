"""What a program does by itself when it is not well, and how it comes back."""
