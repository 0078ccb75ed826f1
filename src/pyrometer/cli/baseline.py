"""`--diff RUN|FILE`: the earlier result that a verb compares with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pyrometer.errors import InputError, UsageError

if TYPE_CHECKING:
    from pyrometer.record import Record

R = TypeVar("R", bound="Record")


def read_baseline(record: type[R], reference: str, *, kind: str, part: str, store_location: str | None) -> R:
    """What to compare with: a document in a file, or a stored run.

    Args:
        record: what the document holds as that part of its evidence.
        reference: a file, or a run as `pyrometer show` takes it.
        kind: of the run; the verb that stores it bears the same name.
        part: of the evidence.
        store_location: folder of the store; `None` with `--no-store`.

    Raises:
        InputError: the file cannot be read, or holds something else.
        UsageError: there is no such file and no store, or the run is of another verb.
        StoreError: there is no such run.
    """
    if Path(reference).is_file():
        document = _in_file(Path(reference), kind)
    else:
        document = _in_store(reference, kind, store_location)
    from pyrometer.record import from_dict
    from pyrometer.store.upgrade import upgraded

    found = (upgraded("snapshot" if part == "snapshot" else kind, document).get("evidence") or {}).get(part)
    try:
        return from_dict(record, found)
    except InputError as error:
        raise InputError(f"{reference}: {error}; name what pyrometer {kind} --json printed") from error


def _in_file(path: Path, kind: str) -> dict[str, Any]:
    try:
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{path}: not JSON ({error}); name what pyrometer {kind} --json printed") from error
    if not isinstance(document, dict):
        raise InputError(f"{path}: not a document; name what pyrometer {kind} --json printed")
    return document


def _in_store(reference: str, kind: str, store_location: str | None) -> dict[str, Any]:
    from pyrometer.store.store import Store

    if store_location is None:
        raise UsageError(
            f"--diff {reference}: no such file, and with --no-store there are no runs; name a file"
        )
    run = Store.open(store_location, create=False).load(reference)
    if run.kind != kind:
        raise UsageError(
            f"--diff {reference}: it is a run of pyrometer {run.kind}; name one of pyrometer {kind}"
        )
    return run.document
