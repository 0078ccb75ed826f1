import os
import signal
import sys

how = sys.argv[1]
print("before", how)
sys.stdout.flush()
if how == "code":
    sys.exit(int(sys.argv[2]))
elif how == "text":
    sys.exit("sorry, no data")
elif how == "none":
    sys.exit()
elif how == "bool":
    sys.exit(True)
elif how == "os":
    os._exit(7)
elif how == "signal":
    os.kill(os.getpid(), int(sys.argv[2]))
    signal.pause()
elif how == "interrupt":
    raise KeyboardInterrupt
elif how == "abort":
    os.abort()
