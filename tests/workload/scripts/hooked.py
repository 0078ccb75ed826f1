"""A script with an excepthook of its own, which looks at every frame."""
import atexit
import sys
import traceback


def report(kind, error, trace):
    print("crashed:", kind.__name__, error, file=sys.stderr)
    for frame in traceback.extract_tb(trace):
        print(" ", frame.filename, frame.lineno, frame.name, file=sys.stderr)


sys.excepthook = report
atexit.register(print, "bye")
traceback.print_stack()


def deep(n):
    return 1 / n if n == 0 else deep(n - 1)


deep(3)
