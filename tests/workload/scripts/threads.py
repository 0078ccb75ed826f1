import atexit
import threading
import time


def fail():
    raise ValueError("in a thread")


def late():
    time.sleep(0.2)
    print("late thread done")


atexit.register(print, "exit function")
threading.Thread(target=fail, name="failing").start()
threading.Thread(target=late).start()
print("main done")
