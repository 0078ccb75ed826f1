import os
import sys

print("first", flush=True)
os.execv(sys.executable, [sys.executable, "-c", "import sys; print('second', sys.path); sys.exit(6)"])
