"""How verbs reach the store: the flags, and saving a result without ever losing it.

A verb that measures looks like this::

    @click.command()
    @store_options
    def command(store_location: str | None) -> int:
        ...
        print_document(stored(document, store_location, kind="bench", ...))

When saving fails, the verb prints its result all the same, and the error is raised when it has ended: one line on
stderr and exit code 2.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from pyrometer.cli.running import announced
from pyrometer.errors import StoreError, UsageError
from pyrometer.garbage import uncollected
from pyrometer.settings import load_settings

if TYPE_CHECKING:  # SQLAlchemy takes longer to import than the rest of the command line
    from pyrometer.hardware.record import Environment
    from pyrometer.report.attachments import Attachments
    from pyrometer.report.documents import EvidenceDocument
    from pyrometer.report.target_documents import TargetDocument
    from pyrometer.store.run import Run, RunSummary
    from pyrometer.store.store import Store
    from pyrometer.tuning.outcome import Tuning

D = TypeVar("D", bound="EvidenceDocument | TargetDocument | Tuning")

_FAILURE = "pyrometer.store_error"


def stored(
    document: D,
    store_location: str | None,
    *,
    kind: str,
    attachments: Attachments | None = None,
) -> D:
    """Store the result of a verb that has `store_options`, and have it know its run.

    What was read from files is not of this machine and is not stored. Secrets are taken out of the document and its attachments.

    Args:
        document: what the verb prints with `--json`.
        store_location: as given by `store_options`; nothing is stored when it is `None`.
        kind: under which it can be looked at again.
        attachments: what its page draws, kept beside it.

    Returns:
        The document with the id, time and command of its run; without an id where nothing was stored.
    """
    from pyrometer.record import to_dict
    from pyrometer.redaction import redacted
    from pyrometer.report.attachments import files_of
    from pyrometer.report.facts.surroundings import named_target

    document, attachments = redacted(document), redacted(attachments)
    if document.environment is None:
        return msgspec.structs.replace(document, **provenance(None))
    run = save_run(
        store_location,
        kind=kind,
        target=named_target(document),
        document=to_dict(document),
        environment=document.environment,
        artifacts=None if attachments is None else files_of(attachments),
    )
    return msgspec.structs.replace(document, **provenance(run))


def save_run(
    store_location: str | None,
    *,
    kind: str,
    target: str,
    document: dict[str, Any],
    environment: Environment,
    artifacts: Mapping[str, bytes | Path] | None = None,
) -> Run | None:
    """Store the result of a verb that has `store_options`.

    Args:
        store_location: as given by `store_options`; nothing is stored when it is `None`.
        kind: under which it can be looked at again.
        target: as it was typed.
        document: what the verb prints with `--json`.
        environment: the machine.
        artifacts: files to keep with it: content, or a file to copy, by name.

    Returns:
        The stored run; its document knows its id, time and command. `None` when nothing was stored; if that was a
        failure, it is raised when the verb has ended.
    """
    if store_location is None:
        return None
    from pyrometer.store.saving import save_result

    try:
        saved, store, notes = save_result(
            store_location,
            document,
            kind=kind,
            target=target,
            environment=environment,
            command=_command(),
            artifacts=artifacts,
        )
    except StoreError as error:
        click.get_current_context().meta[_FAILURE] = error
        return None
    tell_notes(notes)
    with contextlib.suppress(StoreError):  # where an older run is damaged: this one is stored all the same
        if store is not None:
            _tell_of_clock(*store.runs(limit=2))
    return saved


def tell_notes(notes: list[str]) -> None:
    """Say what happened beside the verb's business."""
    for note in notes:
        click.echo(f"note: {note}", err=True)


def _tell_of_clock(saved: RunSummary, before: RunSummary | None = None) -> None:
    """Say that the date of the run before this one lies ahead, where the clock was set back between them."""
    if before is not None and before.created_at > saved.created_at and _ahead_s(before) > 1:
        click.echo(
            f"note: the clock was set back: run {before.id}, which was saved before {saved.id}, is dated later than now; "
            "runs keep the order in which they were saved, but `pyrometer prune --older-than` goes by these dates",
            err=True,
        )


def _ahead_s(run: RunSummary) -> float:
    """By how much a run is dated later than now; runs that are saved side by side may be off by an instant."""
    from pyrometer.store.run import created_at

    return (created_at(run) - datetime.now(UTC)).total_seconds()


def provenance(run: Run | None) -> dict[str, Any]:
    """The head of a document, for `msgspec.structs.replace`: as stored, or of this moment when nothing was stored."""
    if run is not None:
        return {"run_id": run.id, "created": run.created_at, "command": run.command}
    return {
        "run_id": None,
        "created": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        "command": _command(),
    }


def store_options(
    verb: Callable[..., Any], *, stores: Callable[[Mapping[str, Any]], bool] = lambda _flags: True
) -> Callable[..., Any]:
    """Add `--store` and `--no-store`; the verb gets `store_location`, which is `None` with `--no-store`.

    It is announced as a run under way where its flags let it store one; by default all do.
    """

    @_store_flag
    @click.option("--no-store", is_flag=True, help="Do not store the result.")
    @functools.wraps(verb)
    def storing(*, store: str | None, no_store: bool, **flags: Any) -> Any:
        if store is not None and no_store:
            raise UsageError("--store and --no-store exclude each other; give one")
        location = None if no_store else _location(store)
        try:
            with announced(location if stores(flags) else None, flags):
                code = verb(store_location=location, **flags)
        except click.exceptions.Exit as ended:
            code = ended.exit_code
        failure: StoreError | None = click.get_current_context().meta.get(_FAILURE)
        if failure is not None:
            raise failure
        return code

    return storing


def store_option(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--store` to a verb that reads; it gets `store`, opened."""

    @_store_flag
    @functools.wraps(verb)
    def reading(*, store: str | None, **flags: Any) -> Any:
        return verb(store=open_store(_location(store)), **flags)

    return reading


def open_store(location: str) -> Store:
    """The store of a verb that reads; runs that waited for its server are sent there first."""
    with uncollected():
        from pyrometer.store.place import is_server
        from pyrometer.store.store import Store

    opened = Store.open(location, create=False)
    if is_server(location):
        from pyrometer.store.spool import send_kept

        tell_notes(send_kept(location, opened))
    return opened


def store_place(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--store` to a verb that reads a store which may not be there yet; it gets `store_location`."""

    @_store_flag
    @functools.wraps(verb)
    def watching(*, store: str | None, **flags: Any) -> Any:
        return verb(store_location=_location(store), **flags)

    return watching


_store_flag = click.option(
    "--store", metavar="DIR", help="Folder of the stored runs, or postgresql://….  [default: .pyrometer]"
)


def _command() -> list[str]:
    from pyrometer.redaction import redacted_argv

    return ["pyrometer", *redacted_argv(sys.argv[1:])]


def _location(store: str | None) -> str:
    return store or load_settings(os.environ, Path.cwd()).store
