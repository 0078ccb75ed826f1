"""`--diff RUN|FILE`: the earlier result that a verb compares with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pyrometer.errors import InputError, UsageError

if TYPE_CHECKING:
    from pyrometer.record import Record

R = TypeVar("R", bound="Record")


def read_baseline(record: type[R], reference: str, *, kind: str, store_location: str | None) -> R:
    """What to compare with: a document in a file, or a stored run.

    Args:
        record: what the document holds.
        reference: a file, or a run as `pyrometer show` takes it.
        kind: of the run; the verb that stores it bears the same name.
        store_location: folder of the store; `None` with `--no-store`.

    Raises:
        InputError: the file cannot be read, or holds something else.
        UsageError: there is no such file and no store, or the run is of another verb.
        StoreError: there is no such run.
    """
    from pyrometer.record import from_dict, from_json
    from pyrometer.store.store import Store

    if Path(reference).is_file():
        try:
            return from_json(record, Path(reference).read_bytes())
        except OSError as error:
            raise InputError(f"{reference}: cannot be read: {error.strerror}") from error
        except InputError as error:
            raise InputError(f"{reference}: {error}; name what pyrometer {kind} --json printed") from error
    if store_location is None:
        raise UsageError(
            f"--diff {reference}: no such file, and with --no-store there are no runs; name a file"
        )
    run = Store.open(store_location, create=False).load(reference)
    if run.kind != kind:
        raise UsageError(
            f"--diff {reference}: it is a run of pyrometer {run.kind}; name one of pyrometer {kind}"
        )
    return from_dict(record, run.document)
