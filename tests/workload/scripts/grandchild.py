import subprocess
import sys

look = "import os, sys; print(sys.path, os.environ.get('PYTHONPATH'), sorted(sys.modules)); sys.exit(4)"
print(subprocess.run([sys.executable, "-c", look]).returncode, flush=True)
