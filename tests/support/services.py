"""Servers for tests, from Debian's packages: Redis, Prometheus, Alertmanager; a test that needs one that is not there is skipped."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

PATIENCE_S = 180
"""How long a server may take to answer on a busy machine before its test fails."""


def needs(program, package):
    """The path of a program; its test is skipped without it."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"needs {program}: apt-get install {package}")
    return found


def free_port():
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(ask, what, patience_s=PATIENCE_S):
    """Ask again until there is an answer that is true."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        try:
            found = ask()
        except (OSError, urllib.error.URLError):
            found = None
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {patience_s} s")


def get(url):
    """The answer to a request as text."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def get_json(url):
    """The answer to a request."""
    return json.loads(get(url))


class Service:
    """A server in a process of its own."""

    def __init__(self, argv, folder: Path):
        self._argv = [str(part) for part in argv]
        self._log = folder / f"{Path(self._argv[0]).name}.log"
        self._process = None

    def start(self, answers):
        """Start it, and wait until it answers."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._argv, stdout=log, stderr=log)

        def alive():
            assert self._process.poll() is None, self._log.read_text(errors="replace")[-2000:]
            return answers()

        until(alive, self._argv[0])
        return self

    def stop(self):
        """Kill it, as a failing machine would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


class RedisServer(Service):
    """A Redis that keeps nothing on disk."""

    def __init__(self, folder, port=None):
        self.port = port or free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        program = needs("redis-server", "redis-server")
        super().__init__(
            [program, "--port", self.port, "--bind", "127.0.0.1", "--save", "", "--dir", folder], folder
        )

    def begin(self):
        """Start it, and wait until it answers."""
        return self.start(lambda: self.client().ping())

    def client(self):
        redis = pytest.importorskip("redis")
        try:
            found = redis.Redis(port=self.port, socket_timeout=10)
            found.ping()
        except redis.ConnectionError as error:
            raise OSError(str(error)) from error
        return found
