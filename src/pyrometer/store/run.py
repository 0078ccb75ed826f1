"""A result as it is stored: when, where and by which command it was made, its document and its files."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import Annotated, Any

from pyrometer.errors import StoreError
from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import Record, doc
from pyrometer.store.summary import headline, median_s

_CREATED_AT = "%Y-%m-%dT%H:%M:%S.%fZ"


class DamagedRunError(StoreError):
    """A stored run is not what was saved; others can be read."""


class Artifact(Record, frozen=True, kw_only=True):
    """A file that belongs to a run."""

    name: str
    path: Annotated[str, doc("where it lies, relative to the store's folder")]
    size_bytes: Bytes
    sha256: str


class RunSummary(Record, frozen=True, kw_only=True):
    """What a listing shows of a run."""

    id: Annotated[str, doc("begins with the time; any beginning that no other run shares will do")]
    created_at: Annotated[str, doc("UTC, ISO 8601, by the clock of the machine")]
    kind: Annotated[str, doc("the verb that made it: bench, check, matrix, calibration")]
    target: Annotated[str, doc("what was measured, as it was typed")]
    commit_sha: Annotated[str | None, doc("commit of the user's repository; null outside of one")] = None
    dirty: Annotated[bool | None, doc("whether tracked files differed from that commit")] = None
    fingerprint: Annotated[str, doc("hash of what must match before two runs are compared")] = ""
    headline: Annotated[str, doc("the result in one line")] = ""
    median_s: Annotated[Seconds | None, doc("median step, where one was measured to the end")] = None
    number: Annotated[
        int, doc("counts the runs of a store in the order in which they were saved; 0 for one that is not")
    ] = 0


class Run(RunSummary, frozen=True, kw_only=True):
    """A stored result."""

    command: Annotated[list[str], doc("the command line that made it")]
    environment: Annotated[dict[str, Any], doc("machine, versions and settings")]
    document: Annotated[dict[str, Any], doc("what the verb printed with --json")]
    artifacts: list[Artifact]

    def summary(self) -> RunSummary:
        """The part that a listing shows."""
        return RunSummary(**{field: getattr(self, field) for field in RunSummary.__struct_fields__})


class Pruned(Record, frozen=True, kw_only=True):
    """What was removed from a store, or would be removed."""

    runs: list[RunSummary]
    orphans: Annotated[list[str], doc("folders of files whose writer was killed before the run was recorded")]
    freed_bytes: Annotated[Bytes, doc("size of the removed files; the database shrinks as well")]


def new_run(
    kind: str,
    target: str,
    document: dict[str, Any],
    *,
    environment: dict[str, Any],
    command: list[str],
    commit: tuple[str | None, bool | None],
    now: datetime,
) -> Run:
    """Make the record of a result that is about to be stored; its document learns the id, the time and the command.

    Args:
        kind: the verb that made it.
        target: what was measured, as it was typed.
        document: what the verb prints with `--json`.
        environment: the machine, as plain dictionaries.
        command: the command line.
        commit: what `read_commit` returned.
        now: the time in UTC.
    """
    run_id = f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
    created = now.strftime(_CREATED_AT)
    return Run(
        id=run_id,
        created_at=created,
        kind=kind,
        target=target,
        commit_sha=commit[0],
        dirty=commit[1],
        fingerprint=str(environment.get("fingerprint", "")),
        headline=headline(document),
        median_s=median_s(document),
        command=command,
        environment=environment,
        document={**document, "run_id": run_id, "created": created, "command": command},
        artifacts=[],
    )


def created_at(run: RunSummary) -> datetime:
    """When the run was made, in UTC.

    Raises:
        DamagedRunError: what is stored there is no time.
    """
    try:
        return datetime.strptime(run.created_at, _CREATED_AT).replace(tzinfo=UTC)
    except ValueError as error:
        raise DamagedRunError(
            f"run {run.id} is damaged: it was made at {run.created_at!r}, which is no time"
        ) from error
