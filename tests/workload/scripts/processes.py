import multiprocessing
import os
import sys


class Job:
    def __init__(self, n):
        self.n = n


def work(job):
    return job.n**2, "PYTHONPATH" in os.environ, any("pyrometer" in entry and "startup" in entry for entry in sys.path)


if __name__ == "__main__":
    for method in sys.argv[1:]:
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(method, pool.map(work, [Job(n) for n in range(5)]))
