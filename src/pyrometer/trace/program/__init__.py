"""The user's program as a trace shows it: its call tree summed and merged, source lines, modules, phases and stacks."""
