"""A small model in a file, `pyrometer serve` as a process, and clients that ask it without a pause."""

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import time

import httpx

MODEL = """
import torch
from torch import nn

class Scaled(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(factor))

    def forward(self, x):
        return x * self.factor

def workload():
    return Scaled({factor}), torch.ones(2, 3)
"""
SETTINGS = "[tool.pyrometer.serve]\nbudget = '50ms'\nbatch = 8\ndrain = '20s'\n"
BODY = json.dumps({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}]})
URL = "/v2/models/workload/infer"


@contextlib.contextmanager
def process(folder, *flags, settings=SETTINGS, model=MODEL):
    """A server that is ready, its address, and its lines so far."""
    (folder / "pyproject.toml").write_text(settings)
    (folder / "model.py").write_text(model.format(factor=2.0))
    command = [sys.executable, "-m", "pyrometer", "serve", "model.py:workload", "--port", "0", *flags]
    with subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as server:
        lines = []
        for line in server.stdout:
            lines.append(line.rstrip())
            if line.startswith("curl"):
                break
        found = re.search(r"http://\S+", "\n".join(lines))
        assert found, lines
        try:
            yield server, found[0], lines
        finally:
            server.kill()


def answers(url, count=1):
    with httpx.Client(base_url=url, timeout=60) as client:
        return [client.post(URL, content=BODY) for _ in range(count)]


class Load:
    """Clients that ask without a pause, and keep every answer."""

    def __init__(self, url, num_clients=4):
        self.answers, self.faults = [], []
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(url,)) for _ in range(num_clients)]

    def _ask(self, url):
        with httpx.Client(base_url=url, timeout=60) as client:
            while not self._ends.is_set():
                try:
                    self.answers.append(client.post(URL, content=BODY))
                except httpx.HTTPError as error:
                    self.faults.append(error)
                    return

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        self.has(20)
        return self

    def has(self, number):
        end = time.monotonic() + 60
        while len(self.answers) < number:
            assert time.monotonic() < end, self.faults
            time.sleep(0.01)

    def __exit__(self, *_):
        self._ends.set()
        for thread in self._threads:
            thread.join(60)

    def firsts(self):
        return {
            answer.json()["outputs"][0]["data"][0] for answer in self.answers if answer.status_code == 200
        }
