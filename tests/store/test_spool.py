"""A server that goes away while runs are recorded: they wait on this machine and are sent by the next command."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from postgres_server import PASSWORD, PostgresServer

from pyrometer.cli.main import main
from pyrometer.hardware.record import Environment
from pyrometer.record import from_dict
from pyrometer.store.failure import UnreachableError
from pyrometer.store.saving import Saved, save_result
from pyrometer.store.server import ServerBackend
from pyrometer.store.spool import send_kept, waiting
from pyrometer.store.store import Store


@pytest.fixture
def away(postgres: PostgresServer):
    """Makes the server go, and come back in the end."""
    yield postgres.stop
    if postgres._process is None:
        postgres.start()


@pytest.fixture
def save(measured: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    environment = from_dict(Environment, measured.ENVIRONMENT)

    def saving(location: str, target: str = "model.py:work", **artifacts: bytes) -> Saved:
        document = {"target": target}
        return save_result(
            location,
            document,
            kind="bench",
            target=target,
            environment=environment,
            command=[],
            artifacts=artifacts,
        )

    return saving


def test_a_run_waits_while_the_server_is_away_and_is_sent_with_the_next(
    database, postgres, save, away, tmp_path
):
    first = save(database)
    assert first.notes == []
    away()
    kept = save(database, "late.py:work", page=b"<html>")
    assert kept.store is None
    (note,) = kept.notes
    assert "kept in" in note
    assert "\n" not in note
    assert sorted(file.name for file in waiting(database)[0].iterdir()) == ["page", "run.json"]
    with pytest.raises(UnreachableError):
        Store.open(database)
    postgres.start()
    third = save(database)
    assert third.store is not None
    assert "1 run that waited here" in third.notes[0]
    assert [run.id for run in third.store.runs()] == [third.run.id, kept.run.id, first.run.id]
    assert third.store.read_file(third.store.load(kept.run.id), "page") == b"<html>"
    assert waiting(database) == []
    assert send_kept(database, third.store) == []


def test_a_server_that_dies_within_a_record_keeps_nothing_half_written(
    database, postgres, save, away, monkeypatch
):
    save(database)
    locking = ServerBackend._lock

    def dying(self, connection):  # the files are written, the run is not
        away()
        locking(self, connection)

    with monkeypatch.context() as patched:
        patched.setattr(ServerBackend, "_lock", dying)
        kept = save(database, page=b"<html>")
    assert kept.store is None
    postgres.start()
    store = Store.open(database)
    assert len(store.ids()) == 1
    assert postgres.sql("SELECT count(*) FROM blobs", _name(database)) == "0"
    assert send_kept(database, store) != []
    assert {run.id for run in store.runs()} > {kept.run.id}


def test_a_run_whose_answer_was_lost_is_not_stored_twice(database, save, away, postgres):
    away()
    kept = save(database)
    postgres.start()
    store = Store.open(database)
    store.save(kept.run)
    assert send_kept(database, store) == []
    assert len(store.ids()) == 1
    assert waiting(database) == []


def test_what_cannot_be_sent_waits_on_and_holds_nothing_up(database, save, away, postgres):
    away()
    damaged, sound = save(database), save(database)
    folder = next(folder for folder in waiting(database) if folder.name == damaged.run.id)
    (folder / "run.json").write_text("{")
    postgres.start()
    store = Store.open(database)
    said = send_kept(database, store)
    assert len(said) == 2
    assert any(damaged.run.id in line for line in said)
    assert store.ids() == [sound.run.id]
    assert [folder.name for folder in waiting(database)] == [damaged.run.id]


def test_verbs_that_only_read_send_what_waits(database, save, away, postgres, capsys):
    away()
    kept = save(database)
    assert main(["runs", "--store", database]) == 2
    assert capsys.readouterr().err.startswith("error: postgresql://postgres@/")
    postgres.start()
    Store.open(database)
    assert main(["runs", "--json", "--store", database]) == 0
    told = capsys.readouterr()
    assert "stored now" in told.err
    assert [run["id"] for run in json.loads(told.out)["runs"]] == [kept.run.id]


def test_a_writer_that_is_killed_leaves_nothing_half_written(database, postgres, tmp_path):
    code = """
import os, sys
from datetime import datetime, timezone
from pyrometer.store.run import new_run
from pyrometer.store.store import Store
store = Store.open(sys.argv[1])
while True:
    run = new_run("bench", "t", {"text": "x" * 5000}, environment={}, command=[], commit=(None, None), now=datetime.now(timezone.utc))
    store.save(run, {"a": os.urandom(50_000)})
    print(run.id, flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", code, database], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    reported = [process.stdout.readline().strip() for _ in range(5)]
    process.send_signal(signal.SIGKILL)
    reported += process.communicate()[0].split()
    store = Store.open(database)
    runs = [store.load(run_id) for run_id in store.ids()]
    assert {run.id for run in runs} >= set(reported)
    assert all(len(store.read_file(run, "a")) == 50_000 for run in runs)
    assert postgres.sql("SELECT count(DISTINCT run_id) FROM blobs", _name(database)) == str(len(runs))


@pytest.mark.slow
def test_verbs_measure_into_a_server_and_say_no_password(postgres, tmp_path, monkeypatch, capfd):
    name = postgres.new_database()
    postgres.sql("GRANT CREATE ON SCHEMA public TO keyed", name)
    address = postgres.address(name, "keyed", PASSWORD)
    (tmp_path / "work.py").write_text(
        "import torch\ndef work():\n    return torch.nn.Linear(2, 2), torch.ones(1, 2)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYROMETER_STORE", address)
    assert main(["bench", "work.py:work", "--budget", "300ms", "--json"]) in {0, 3}
    assert main(["bench", "work.py:work", "--budget", "300ms", "--store", address]) in {0, 3}
    capfd.readouterr()
    assert main(["runs"]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 3
    for verb in (
        ["show", "last"],
        ["show", "last", "--json"],
        ["compare", "last", "last"],
        ["export", "last", "-o", "run.html"],
    ):
        assert main(verb) == 0
    assert main(["show", "nothing"]) == 2
    assert main(["prune", "--keep", "1"]) == 0
    told = capfd.readouterr()
    kept = "".join(
        path.read_text() for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".pyc"
    )
    dumped = postgres.sql("SELECT * FROM runs", name)
    secrets = (PASSWORD, address.split(":")[2].split("@")[0])
    assert [one for one in secrets for text in (told.out, told.err, kept, dumped) if one in text] == []
    assert len(dumped.splitlines()) == 1
    (tmp_path / "pyproject.toml").write_text(f'[tool.pyrometer]\nstore = "{address}"\n')
    monkeypatch.delenv("PYROMETER_STORE")
    assert main(["runs"]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 2


def _name(address: str) -> str:
    return address.split("@/")[1].split("?", maxsplit=1)[0]
