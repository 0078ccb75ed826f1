"""The memory of a script that is run as it is.

`profile` starts the script and reads what came back. The rest runs inside it: `follower` is told of what begins and ends, and
has `recording` (or for compiled code `account`) look at the first steps and `watching` at those after.
"""
