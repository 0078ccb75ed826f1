"""Rows of the database and the runs that they are, whoever read them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import msgspec

from pyrometer.record import from_dict
from pyrometer.store.run import DamagedRunError, Run
from pyrometer.store.upgrade import upgraded

# Every revision in `migrations/versions`, oldest first. Known here too, so that a store that is up to date is
# opened without importing alembic, which takes longer than the listing itself.
REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006")


def run_of(row: Mapping[str, Any], artifacts: Sequence[Mapping[str, Any]], where: str) -> Run:
    """The run of a row, with its files, as documents are today.

    Args:
        row: every column, JSON decoded.
        artifacts: the rows of its files.
        where: the database, for messages.

    Raises:
        DamagedRunError: it is not what was saved.
    """
    plain = {name: value for name, value in row.items() if name != "sha256"}
    if not _is_as_saved(plain, row["sha256"]):
        raise DamagedRunError(
            f"{where}: run {plain['id']} is damaged: it is not what was saved; take it from a backup, or measure again; "
            "other runs can be read"
        )
    document = upgraded(plain["kind"], plain["document"])
    return from_dict(
        Run, {**plain, "document": document, "artifacts": sorted(artifacts, key=itemgetter("name"))}
    )


def digest_of(plain: Mapping[str, Any]) -> str:
    """Of all columns of a run as they are read, whatever the order of keys."""
    return hashlib.sha256(msgspec.json.encode(plain, order="deterministic")).hexdigest()


def _is_as_saved(plain: Mapping[str, Any], digest: str | None) -> bool:
    """Whether a run has its digest; the oldest have none, and later ones one that does not cover their number."""
    return (
        digest is None
        or digest == digest_of(plain)
        or digest == digest_of({name: value for name, value in plain.items() if name != "number"})
    )
