"""What faults leave of results: kills at random moments, disks without room, stores that are damaged, newer or read-only.

    python benchmarks/faults.py [--kills 200] [--flips 100] [--writers 6] [--seed 0] [--only kill]

Each verb runs as its command line does, in a process of its own that is forked from this one, so that torch is imported
once. A result counts as reported when its whole JSON document stands on stdout with the id of its run. Prints one line
for each kind of fault, and ends with 1 where a promise was broken.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

from pyrometer.cli import saving
from pyrometer.cli.main import main
from pyrometer.errors import InputError, StoreError
from pyrometer.store.run import Run
from pyrometer.store.store import Store

PROGRAM = """
import torch, pyrometer as pm
def workload():
    torch.set_num_threads(1)
    return pm.Inference(torch.nn.Linear(32, 8), torch.randn(16, 32))
"""
VERBS = {
    "check": ["--budget", "1s"],
    "bench": ["--budget", "300ms"],
    "memory": ["--leaks", "5"],
    "trace": ["--steps", "2"],
}


@dataclass
class Verb:
    """A verb under way in a forked process, with what it prints in two files."""

    name: str
    pid: int
    folder: Path
    started_s: float
    wall_s: float = 0.0

    @property
    def stdout(self) -> str:
        """What it printed so far."""
        return (self.folder / "out").read_text(encoding="utf-8")

    @property
    def stderr(self) -> str:
        """What it told beside."""
        return (self.folder / "err").read_text(encoding="utf-8")

    def reported(self) -> dict[str, Any] | None:
        """The document that it printed, if it is there as a whole and names a stored run."""
        try:
            document: dict[str, Any] = json.loads(self.stdout)
        except ValueError:
            return None
        return document if document.get("run_id") else None

    def wait(self) -> int:
        """The exit code, once it has ended."""
        _, status = os.waitpid(self.pid, 0)
        self.wall_s = time.monotonic() - self.started_s
        return os.waitstatus_to_exitcode(status)

    def kill(self) -> None:
        """With all that it started."""
        os.killpg(self.pid, signal.SIGKILL)


def start(name: str, room: Path, store: Path, before: Callable[[], object] = lambda: None) -> Verb:
    """Begin a verb on the program in `room`, in a session of its own."""
    folder = Path(tempfile.mkdtemp(dir=room))
    argv = [name, str(room / "program.py") + ":workload", *VERBS[name], "--json", "--store", str(store)]
    pid = os.fork()
    if pid == 0:
        os.setsid()
        for number, stream in ((1, "out"), (2, "err")):
            os.dup2(os.open(folder / stream, os.O_WRONLY | os.O_CREAT), number)
        os.chdir(folder)
        sys.argv = ["pyrometer", *argv]
        before()
        code = main(argv)
        sys.stdout.flush()
        os._exit(code)
    while not (folder / "err").exists():
        time.sleep(0.001)
    return Verb(name, pid, folder, time.monotonic())


@dataclass
class Kept:
    """What was reported as saved, and what of it is not there, or not as it was printed."""

    documents: list[dict[str, Any]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def verify(self, folder: Path) -> int:
        """Open the store, hold it against what was reported; the number of runs that it lists."""
        connection = sqlite3.connect(folder / "runs.db")
        (said,) = connection.execute("PRAGMA integrity_check").fetchone()
        connection.close()
        if said != "ok":
            self.broken.append(f"integrity: {said}")
        store = Store.open(folder)
        runs = {summary.id: store.load(summary.id) for summary in store.runs()}
        for run in runs.values():
            self.broken += [f"{run.id}: {artifact.name} is not whole" for artifact in _lost(store, run)]
        for document in self.documents:
            run = runs.get(document["run_id"])
            if run is None:
                self.broken.append(f"{document['run_id']}: reported and not there")
            elif any(run.document[part] != document[part] for part in ("evidence", "diagnosis", "created")):
                self.broken.append(f"{run.id}: other than it was printed")
        return len(runs)


def _lost(store: Store, run: Run) -> Iterator[Any]:
    for artifact in run.artifacts:
        path = store.artifact_path(run, artifact.name)
        content = path.read_bytes() if path.exists() else b""
        if hashlib.sha256(content).hexdigest() != artifact.sha256:
            yield artifact


def kills(room: Path, number: int, writers: int, coin: random.Random) -> tuple[str, list[str]]:
    """Kill verbs at random moments, `writers` at once on one store; half of the moments lie where results are saved."""
    store, kept, num_killed = room / "killed", Kept(), 0
    usual = {}
    for name in VERBS:
        together = [start(name, room, store) for _ in range(writers)]
        assert [verb.wait() for verb in together] == [0] * writers, together[0].stderr
        kept.documents += [document for verb in together if (document := verb.reported()) is not None]
        usual[name] = max(verb.wall_s for verb in together)
    while num_killed < number:
        together = [start(coin.choice(list(VERBS)), room, store) for _ in range(writers)]
        moments = sorted(
            (usual[verb.name] * coin.choice((coin.uniform(0, 1), coin.uniform(0.7, 1.1))), index)
            for index, verb in enumerate(together)
        )
        started_s = time.monotonic()
        for after_s, index in moments:
            time.sleep(max(started_s + after_s - time.monotonic(), 0))
            together[index].kill()
        for verb in together:
            num_killed += verb.wait() == -signal.SIGKILL
            if (document := verb.reported()) is not None:
                kept.documents.append(document)
        kept.verify(store)
    num_runs = kept.verify(store)
    left = len([entry for entry in (store / "artifacts").iterdir() if entry.suffix == ".partial"])
    said = f"{num_killed} killed, {len(kept.documents)} reported as saved, {num_runs} listed, {left} folders begun"
    return said, kept.broken


def refused(verb: Verb) -> list[str]:
    """What is wrong with how a verb told that its result could not be stored; its result must stand on stdout."""
    code, lines = verb.wait(), [line for line in verb.stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("error: ")]
    wrong = []
    if code != 2:
        wrong.append(f"{verb.name}: exit code {code}")
    if len(errors) != 1 or "Traceback" in verb.stderr or "internal fault" in verb.stderr:
        wrong.append(f"{verb.name}: {errors or lines[-1:]}")
    try:
        if json.loads(verb.stdout)["run_id"] is not None:
            wrong.append(f"{verb.name}: tells of a run that is not stored")
    except ValueError:
        wrong.append(f"{verb.name}: no result")
    return wrong


def in_turn(room: Path, store: Path) -> tuple[str, list[str]]:
    """Every verb on a store that cannot take its result."""
    wrong = [text for name in VERBS for text in refused(start(name, room, store))]
    return f"{len(VERBS)} verbs print their result, one line, exit code 2", wrong


def full_disk(room: Path) -> tuple[str, list[str]]:
    """A disk of 1 MB with a store on it, and no room."""
    with mounted(room / "disk", "-t", "tmpfs", "-o", "size=1m", "tmpfs") as disk:
        kept = Kept()
        first = start("bench", room, disk / "store")
        assert first.wait() == 0, first.stderr
        kept.documents = [document for document in [first.reported()] if document is not None]
        fill(disk)
        said, wrong = in_turn(room, disk / "store")
        (disk / "filler").unlink()
        kept.verify(disk / "store")
        return said, wrong + kept.broken


def filling_disk(room: Path) -> tuple[str, list[str]]:
    """A disk of 1 MB that fills up with results: each is stored as a whole, or told not to be."""
    with mounted(room / "disk", "-t", "tmpfs", "-o", "size=1m", "tmpfs") as disk:
        kept, wrong, num_refused = Kept(), [], 0
        while num_refused < 2:
            verb = start("trace", room, disk / "store")
            code = verb.wait()
            if code == 0 and (document := verb.reported()) is not None:
                kept.documents.append(document)
            elif code != 2 or verb.stderr.count("error: ") != 1 or not verb.stdout:
                wrong.append(f"exit code {code}: {verb.stderr.splitlines()[-1:]}")
            num_refused += code != 0
        kept.verify(disk / "store")
        return f"{len(kept.documents)} stored, {num_refused} refused in one line", wrong + kept.broken


def fill(disk: Path) -> None:
    """Leave no room, not for a byte."""
    with (disk / "filler").open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while file.write(bytes(size)):
                    pass
            except OSError:
                continue


def read_only(room: Path) -> tuple[str, list[str]]:
    """A store behind a mount that nobody can write to, root neither."""
    first = start("bench", room, room / "writable" / "store")
    assert first.wait() == 0, first.stderr
    with mounted(room / "view", "--bind", str(room / "writable")) as view:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(view)], check=True)
        said, wrong = in_turn(room, view / "store")
        if len(Store.open(view / "store", create=False).runs()) != 1:
            wrong.append("the runs in it cannot be listed")
        return said, wrong


def newer(room: Path) -> tuple[str, list[str]]:
    """A store that a later version wrote."""
    store = room / "newer"
    Store.open(store)
    connection = sqlite3.connect(store / "runs.db")
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.commit()
    connection.close()
    return in_turn(room, store)


def no_database(room: Path) -> tuple[str, list[str]]:
    """A store whose database is something else."""
    store = room / "nonsense"
    store.mkdir()
    (store / "runs.db").write_bytes(os.urandom(1 << 14))
    return in_turn(room, store)


def flips(room: Path, number: int, coin: random.Random) -> tuple[str, list[str]]:
    """Other bytes at random places of the database: each run is as it was or refused in one line, never told otherwise."""
    sound = room / "sound"
    for name in VERBS:
        assert start(name, room, sound).wait() == 0
    with Store.open(sound)._engine.begin() as connection:  # noqa: SLF001 - all bytes in one file
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    known = {summary.id: Store.open(sound).load(summary.id) for summary in Store.open(sound).runs()}
    whole, wrong, num_refused = (sound / "runs.db").read_bytes(), [], 0
    for turn in range(number):
        place, width = coin.randrange(len(whole)), coin.choice((1, 1, 16, 512))
        damaged = bytearray(whole)
        damaged[place : place + width] = bytes(
            byte ^ coin.randrange(1, 256) for byte in damaged[place : place + width]
        )
        copy = room / f"flipped{turn}"
        shutil.copytree(sound, copy)
        for log in ("runs.db-wal", "runs.db-shm"):
            (copy / log).unlink(missing_ok=True)
        (copy / "runs.db").write_bytes(damaged)
        refusals, faults = read_damaged(copy, known)
        num_refused += bool(refusals)
        wrong += [f"byte {place} (+{width}): {fault}" for fault in faults]
        shutil.rmtree(copy)
    return (
        f"{number} stores: {num_refused} refuse something, {number - num_refused} tell all as it was",
        wrong,
    )


def read_damaged(folder: Path, known: dict[str, Run]) -> tuple[list[str], list[str]]:
    """Everything that is read of a damaged store: the refusals in one line, and what else went wrong."""
    refusals: list[str] = []
    faults: list[str] = []
    try:
        store = Store.open(folder)
        listed = [summary.id for summary in store.runs()]
    except StoreError as error:
        return [str(error)], faults
    except Exception as error:  # noqa: BLE001 - what a user would see as an internal fault
        return refusals, [f"listing: {type(error).__name__}: {error}"]
    for run_id in {*listed, *known}:
        try:
            if store.load(run_id) != known.get(run_id):
                faults.append(f"{run_id} is told otherwise than it was saved")
        except (StoreError, InputError) as error:
            refusals.append(str(error))
        except Exception as error:  # noqa: BLE001 - as above
            faults.append(f"{run_id}: {type(error).__name__}: {str(error)[:100]}")
    faults += [f"more than a line: {text!r}" for text in refusals if "\n" in text]
    return refusals, faults


def flipped_verbs(room: Path, coin: random.Random) -> tuple[str, list[str]]:
    """Verbs that save to a store of which most is damaged."""
    store = room / "damaged"
    assert start("memory", room, store).wait() == 0
    whole = bytearray((store / "runs.db").read_bytes())
    whole[4096:] = coin.randbytes(len(whole) - 4096)
    for log in ("runs.db-wal", "runs.db-shm"):
        (store / log).unlink(missing_ok=True)
    (store / "runs.db").write_bytes(whole)
    return in_turn(room, store)


def clock_back(room: Path) -> tuple[str, list[str]]:
    """A clock that is set back by a day between two runs."""

    class Yesterday(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime.now(tz) - timedelta(days=1)

    def set_back() -> None:
        saving.datetime = Yesterday  # type: ignore[misc]

    store, wrong = room / "clock", []
    first = start("bench", room, store)
    assert first.wait() == 0, first.stderr
    second = start("bench", room, store, before=set_back)
    code, document = second.wait(), second.reported()
    if code != 0 or document is None:
        return "", [f"exit code {code}: {second.stderr.splitlines()[-1:]}"]
    if second.stderr.count("the clock") != 1:
        wrong.append("nothing tells that the clock was set back")
    newest = Store.open(store).load("last")
    if newest.id != document["run_id"]:
        wrong.append("`last` is another run than the one that was saved last")
    if newest.created_at > datetime.now(UTC).isoformat():
        wrong.append("dated into the future")
    return "`last` is the run that was saved last, and one line tells of the clock", wrong


@contextmanager
def mounted(place: Path, *arguments: str) -> Iterator[Path]:
    """Something mounted at `place`.

    Raises:
        PermissionError: this user may not mount.
    """
    place.mkdir(exist_ok=True)
    done = subprocess.run(["mount", *arguments, str(place)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise PermissionError(done.stderr.strip())
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def run(number: int, num_flips: int, writers: int, seed: int, only: str) -> int:
    """Everything in turn; the number of promises that were broken."""
    import torch._dynamo  # noqa: F401 - before the first fork, so that each verb finds it

    from pyrometer.evidence import observe  # noqa: F401

    coin, num_broken = random.Random(seed), 0
    cases: dict[str, Callable[[Path], tuple[str, list[str]]]] = {
        "full disk": full_disk,
        "filling disk": filling_disk,
        "read-only store": read_only,
        "newer store": newer,
        "no database": no_database,
        "damaged store": lambda room: flipped_verbs(room, coin),
        "flipped bytes": lambda room: flips(room, num_flips, coin),
        "clock set back": clock_back,
        "kill -9": lambda room: kills(room, number, writers, coin),
    }
    for name, case in ((name, case) for name, case in cases.items() if only in name):
        with tempfile.TemporaryDirectory(prefix="pyrometer-faults-") as folder:
            (Path(folder) / "program.py").write_text(PROGRAM)
            try:
                said, broken = case(Path(folder))
            except PermissionError as error:
                print(f"{name:16} skipped: {error}", flush=True)
                continue
        print(f"{name:16} {'ok' if not broken else 'BROKEN'}: {said}", flush=True)
        for text in broken[:20]:
            print(f"{'':16} {text}", flush=True)
        num_broken += len(broken)
    return num_broken


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--flips", type=int, default=100)
    parser.add_argument("--writers", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="faults whose names contain this")
    asked = parser.parse_args()
    sys.exit(run(asked.kills, asked.flips, asked.writers, asked.seed, asked.only) > 0)
