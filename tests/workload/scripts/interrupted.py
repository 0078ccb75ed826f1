"""Reports how it was interrupted, and takes its time about it."""
import signal
import sys
import time

try:
    print("ready", flush=True)
    time.sleep(30)
except KeyboardInterrupt:
    time.sleep(0.3)
    print("interrupted", flush=True)
    sys.exit(9)
