"""A result becomes a run of a store."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from pyrometer.record import Record, to_dict
from pyrometer.redaction import redacted
from pyrometer.store.commit import read_commit
from pyrometer.store.failure import UnreachableError
from pyrometer.store.place import Location, is_server
from pyrometer.store.run import Run, new_run
from pyrometer.store.spool import keep_for_later, send_kept
from pyrometer.store.store import Store


class Saved(NamedTuple):
    """A run that will not be lost."""

    run: Run
    store: Store | None
    """`None` where it waits for its server."""

    notes: list[str]
    """What else happened, in a line each."""


def save_result(
    location: Location,
    document: dict[str, Any],
    *,
    kind: str,
    target: str,
    environment: Record,
    command: list[str],
    artifacts: Mapping[str, bytes | Path] | None = None,
) -> Saved:
    """Save a document without its secrets, with the commit of the working directory and the time.

    Where a server does not answer, the run is kept on this machine, and the next command that reaches the server stores it.

    Args:
        location: folder of the store, or its address.
        document: what the verb prints with `--json`.
        kind: under which it can be looked at again.
        target: what was looked at, as it was typed.
        environment: the machine.
        command: what made it, without secrets.
        artifacts: files to keep with it: content, or a file to copy, by name.

    Raises:
        StoreError: the store cannot be opened or written.
    """
    run = new_run(
        kind,
        redacted(target),
        redacted(document),
        environment=to_dict(environment),
        command=command,
        commit=read_commit(Path.cwd()),
        now=datetime.now(UTC),
    )
    try:
        store = Store.open(location)
        notes = send_kept(location, store)
        return Saved(store.save(run, artifacts), store, notes)
    except UnreachableError as error:
        if not is_server(location):
            raise
        kept = keep_for_later(location, run, artifacts or {})
        return Saved(
            run, None, [f"{error}; the run is kept in {kept}, and the next command that gets there stores it"]
        )
