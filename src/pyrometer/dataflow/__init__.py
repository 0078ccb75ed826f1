"""What reads what: operators of a few steps, the values that pass between them, and what that says of work nobody needs."""
