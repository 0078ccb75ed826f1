"""Prints everything by which a script could tell how it was started.

Except for: standard modules that are already loaded, our own modules, and the finder that waits for torch.
"""
import inspect
import os
import pickle
import signal
import sys
import threading


class Point:
    pass


main = sys.modules["__main__"]
print(__name__, __file__, __doc__, __spec__, __package__, type(__loader__).__name__, __builtins__)
print(sorted(name for name in vars(main)))
print(main.__dict__ is globals())
print(sys.argv, sys.orig_argv, sys.executable, sys.prefix, os.getcwd())
print(sys.path, sys.flags, sys._xoptions, sys.warnoptions)
print([type(finder).__name__ for finder in sys.meta_path if type(finder).__name__ != "AfterImport"], len(sys.path_hooks))
print(sorted(name for name in sys.modules if "pyrometer" not in name and name not in {"mmap", "atexit", "__future__"}))
print(sorted(os.environ.items()))
print([frame.filename for frame in inspect.stack()], [thread.name for thread in threading.enumerate()], threading.active_count())
print(os.open(__file__, os.O_RDONLY), os.getpgid(0) == os.getpgrp())
print([signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)])
print(sys.excepthook is sys.__excepthook__, sys.gettrace(), sys.getprofile(), sys.getrecursionlimit())
print(pickle.dumps(Point()))
print(sys.stdin.isatty(), sys.stdout.isatty(), sys.stdout.encoding, sys.stdout.line_buffering)
print(sys.path_importer_cache.keys())
