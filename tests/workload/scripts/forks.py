import os
import sys

print("one", flush=True)
child = os.fork()
if child == 0:
    print("child", flush=True)
    sys.exit(5)
_, status = os.waitpid(child, 0)
print("child ended with", os.waitstatus_to_exitcode(status))
