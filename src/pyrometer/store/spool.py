"""Runs that wait for their server: kept on this machine, and stored by the next command that reaches it.

::

    .pyrometer/spool/<server>/<run id>/run.json    and the files of the run, under their names
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from pyrometer.errors import InputError, StoreError
from pyrometer.quantity import counted
from pyrometer.record import from_json, to_json
from pyrometer.store.artifacts import remove_artifacts, write_artifacts
from pyrometer.store.backend import Contents
from pyrometer.store.failure import UnreachableError, store_errors
from pyrometer.store.place import Location, is_server, local_folder, shown
from pyrometer.store.run import Run
from pyrometer.store.store import Store

_RUN = "run.json"


def keep_for_later(location: Location, run: Run, artifacts: Contents) -> Path:
    """Keep a run, complete or not at all, until its server answers.

    Raises:
        StoreError: it cannot be written here either.
    """
    place = _place(location)
    with store_errors(place):
        made = not local_folder(location).exists()
        place.mkdir(parents=True, exist_ok=True)
        if made:
            (local_folder(location) / ".gitignore").write_text("*\n", encoding="utf-8")
        write_artifacts(place, run.id, {**artifacts, _RUN: to_json(run)})
    return place / run.id


def send_kept(location: Location, store: Store) -> list[str]:
    """Store what waits for this server, the oldest first; what happened, in a line each.

    A run that cannot be stored goes on waiting, and others are not held up by it.
    """
    said: list[str] = []
    sent = 0
    for folder in waiting(location):
        try:
            sent += _send(folder, store)
        except UnreachableError as error:
            return [*said, f"runs in {folder.parent} still wait for their server: {error}"]
        except (StoreError, InputError, OSError) as error:
            said.append(f"{folder}: the run was not stored, and waits on: {error}")
    if sent:
        said.append(f"{counted(sent, 'run')} that waited here while {store.name} was away, stored now")
    return said


def waiting(location: Location) -> list[Path]:
    """The folders of the runs that wait for a server, the oldest first."""
    if not is_server(location):
        return []
    with contextlib.suppress(FileNotFoundError):
        return sorted(folder for folder in _place(location).iterdir() if not folder.name.startswith("."))
    return []


def _send(folder: Path, store: Store) -> bool:
    try:
        run = from_json(Run, (folder / _RUN).read_bytes())
    except FileNotFoundError:
        return False  # another command sent it in this moment
    is_new = not store.summaries([run.id])
    if is_new:  # an answer of the server may have been lost, and not the run
        store.save(run, {file.name: file for file in folder.iterdir() if file.name != _RUN})
    remove_artifacts(folder.parent, folder.name)
    return is_new


def _place(location: Location) -> Path:
    server = hashlib.sha256(shown(location).encode()).hexdigest()[:12]
    return local_folder(location) / "spool" / server
