"""A store with measurements, and a real server of it."""

from __future__ import annotations

import json
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import httpx
import pytest

from pyrometer.dashboard.server import Dashboard
from pyrometer.record import to_dict
from pyrometer.store.run import Run
from pyrometer.store.store import Store

Save = Callable[..., Run]
Serve = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def stored(measured: ModuleType) -> Callable[..., Run]:
    """Makes runs that are not stored yet, of a clean commit."""

    def made(*arguments: Any, commit: str = "0123456789abcdef", **options: Any) -> Run:
        run: Run = measured.measured_run(*arguments, commit=(commit, False), **options)
        return run

    return made


@pytest.fixture
def save(folder: Path, stored: Callable[..., Run]) -> Save:
    """Store a run; the first makes the store."""

    def saving(*arguments: Any, artifacts: dict[str, bytes] | None = None, **options: Any) -> Run:
        return Store.open(folder).save(stored(*arguments, **options), artifacts)

    return saving


class Server:
    """A dashboard in a thread of its own, and a client that has shown the token."""

    def __init__(self, dashboard: Dashboard) -> None:
        self.dashboard = dashboard
        self.url = dashboard.url
        self.origin = dashboard.url.split("/?")[0]
        self.client = httpx.Client(base_url=self.origin, follow_redirects=True, timeout=30)

    def get(self, address: str, **options: Any) -> httpx.Response:
        return self.client.get(address, **options)

    def raw(self, address: str) -> tuple[int, bytes]:
        """Status and answer for an address as it stands: clients tidy addresses before they ask."""
        host, port = self.origin.removeprefix("http://").split(":")
        head = {
            "host": f"{host}:{port}",
            "cookie": f"pyrometer-{port}={self.dashboard.token}",
            "connection": "close",
        }
        lines = [f"GET {address} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items())]
        answer = self.raw_bytes("\r\n".join([*lines, "", ""]).encode())
        return int(answer.split(b" ", 2)[1]), answer

    def raw_bytes(self, request: bytes) -> bytes:
        """The answer to bytes that no client would send."""
        host, port = self.origin.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(request)
            answer = b""
            while chunk := connection.recv(65536):
                answer += chunk
        return answer

    def stranger(self) -> httpx.Client:
        return httpx.Client(base_url=self.origin, timeout=30)


@contextmanager
def serving(folder: Path, **options: Any) -> Iterator[Server]:
    dashboard = Dashboard(folder, **options)
    ready = threading.Event()
    thread = threading.Thread(target=dashboard.serve, kwargs={"on_ready": ready.set})
    thread.start()
    try:
        assert ready.wait(30)
        server = Server(dashboard)
        with server.client:
            assert server.get(server.url).status_code in {200, 503}
            yield server
    finally:
        dashboard.stop()
        thread.join(30)
        assert not thread.is_alive()


@pytest.fixture
def server(folder: Path) -> Iterator[Server]:
    with serving(folder) as running:
        yield running


class Kept(NamedTuple):
    """A server that a file's tests ask and leave as it is, and the runs in its store."""

    server: Server
    ids: dict[str, str]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, measured: ModuleType) -> Iterator[Kept]:
    """Holds a bench with a file, and a newer check of another target and commit."""
    folder = tmp_path_factory.mktemp("kept") / "store"
    bench = measured.measured_run(age_s=60)
    check = measured.measured_run(target="other.py:work", kind="check", commit=("beef" * 10, False))
    store = Store.open(folder)
    ids = {"bench": store.save(bench, {"x.bin": b"mine"}).id, "check": store.save(check).id}
    with serving(folder) as running:
        yield Kept(running, ids)


@pytest.fixture
def serve() -> Serve:
    """Serves a folder for as long as a `with` block."""
    return serving


@pytest.fixture
def fill(stored: Callable[..., Run]) -> Callable[..., None]:
    """Puts many runs of so many targets into a store at once, a minute apart."""

    def filling(folder: Path, count: int, num_targets: int = 40) -> None:
        Store.open(folder)
        database = sqlite3.connect(folder / "runs.db")
        plain = to_dict(stored())
        del plain["artifacts"]
        columns = ", ".join(plain)
        rows = []
        for number in range(count):
            now = datetime.now(UTC) - timedelta(minutes=number)
            fresh = {
                "id": f"{now:%Y%m%d-%H%M%S}-{number:06x}",
                "created_at": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
                "target": f"model_{number % num_targets}.py:work",
                "median_s": 0.001 + number % 7 * 1e-4,
                "number": -number,
            }
            values = plain | fresh
            rows.append([json.dumps(v) if isinstance(v, (dict, list)) else v for v in values.values()])
        with database:
            marks = ", ".join("?" * len(plain))
            database.executemany(f"INSERT INTO runs ({columns}) VALUES ({marks})", rows)
        database.close()

    return filling
