"""A PostgreSQL server of the tests' own, and an empty database in it for each test that asks."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest

PASSWORD = "hun@ter/2 is?wrong"
"""Of the user `keyed`: with all that has to be written otherwise in an address."""

# Who owns the data may not be root. Passwords are asked of one user only.
_ACCESS = "local all keyed scram-sha-256\nlocal all all trust\n"
_SETTINGS = ("listen_addresses=", "fsync=off", "shared_buffers=16MB", "max_connections=60", "lc_messages=C")


@dataclass
class PostgresServer:
    """A server on a socket in a folder; `stop` and `start` make it come and go."""

    folder: Path
    programs: Path
    user: list[str]
    _names: Iterator[int] = field(default_factory=itertools.count)
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        command = [str(self.programs / "postgres"), "-D", str(self.folder / "data"), "-k", str(self.folder)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen([*self.user, *command, *settings], stderr=log, stdout=log)
        while self._run(["pg_isready", "-q", "-h", str(self.folder)], check=False).returncode:
            assert self._process.poll() is None, (self.folder / "log").read_text()

    def stop(self) -> None:
        """At once, as a machine that fails: connections break."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(timeout=30)
            self._process = None

    def sql(self, statement: str, database: str = "postgres") -> str:
        command = [
            "psql",
            "-X",
            "-q",
            "-A",
            "-t",
            "-h",
            str(self.folder),
            "-U",
            "postgres",
            "-d",
            database,
            "-c",
        ]
        return self._run([*command, statement]).stdout.decode().strip()

    def new_database(self) -> str:
        name = f"runs{os.getpid()}_{next(self._names)}"
        self.sql(f"CREATE DATABASE {name}")
        return name

    def address(self, database: str, user: str = "postgres", password: str | None = None) -> str:
        secret = "" if password is None else f":{quote(password, safe='')}"
        return f"postgresql://{user}{secret}@/{database}?host={self.folder}"

    def _run(self, command: list[str], *, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        program = str(self.programs / command[0]) if "/" not in command[0] else command[0]
        return subprocess.run([*self.user, program, *command[1:]], capture_output=True, check=check, cwd="/")


def _programs() -> Path | None:
    found = shutil.which("postgres")
    if found is not None:
        return Path(found).resolve().parent
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    return places[-1].parent if places else None


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    programs = _programs()
    if programs is None:
        pytest.skip("no PostgreSQL server is installed: apt-get install postgresql")
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'pyrometer[postgres]'")
    user: list[str] = []
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # a socket's path must be short
    if os.geteuid() == 0:
        owner = next(one for one in pwd.getpwall() if one.pw_name in {"postgres", "nobody"})
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        user = ["setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"]
    server = PostgresServer(folder, programs, user)
    server._run(
        [
            "initdb",
            "-D",
            str(folder / "data"),
            "-U",
            "postgres",
            "-A",
            "trust",
            "-N",
            "-E",
            "UTF8",
            "--locale=C",
        ]
    )
    (folder / "data" / "pg_hba.conf").write_text(_ACCESS)
    server.start()
    try:
        server.sql(f"CREATE ROLE keyed LOGIN PASSWORD '{PASSWORD}'; CREATE ROLE reader LOGIN")
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


@pytest.fixture
def database(postgres: PostgresServer) -> str:
    """The address of an empty database."""
    return postgres.address(postgres.new_database())
