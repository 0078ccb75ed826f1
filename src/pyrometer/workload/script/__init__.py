"""A script under observation: run as it is, with its steps, phases and memory seen from inside.

`observe` starts the script; what runs inside it is in `startup`; `events` reads what was logged there, and
`steps` makes steps of it.
"""
