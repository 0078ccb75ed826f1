"""Where the host's time goes: in which of the user's lines, in which calls, and what these calls do."""
