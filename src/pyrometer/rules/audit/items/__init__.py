"""The items of the checklist, a file per group."""
