"""A result becomes a run of a store."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyrometer.record import Record, to_dict
from pyrometer.redaction import redacted
from pyrometer.store.commit import read_commit
from pyrometer.store.run import Run, new_run
from pyrometer.store.store import Store


def save_result(
    location: str | Path,
    document: dict[str, Any],
    *,
    kind: str,
    target: str,
    environment: Record,
    command: list[str],
    artifacts: Mapping[str, bytes | Path] | None = None,
) -> tuple[Store, Run]:
    """Save a document without its secrets, with the commit of the working directory and the time.

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
    store = Store.open(location)
    return store, store.save(run, artifacts)
