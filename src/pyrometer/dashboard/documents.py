"""What the addresses under `/api` answer with: the data of each page, as JSON."""

from __future__ import annotations

from typing import Annotated

from pyrometer.dashboard.index import Filter
from pyrometer.document import SCHEMA_VERSION, Document
from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc
from pyrometer.report.attachments import PastRun
from pyrometer.store.run import RunSummary
from pyrometer.store.running import Running, elapsed_s


class RunsPage(Document, frozen=True, kw_only=True):
    """`/api/runs`: one page of the list."""

    asked: Annotated[Filter, doc("what was asked for: q, kind, target, commit")]
    total: Annotated[int, doc("runs that it admits")]
    page: Annotated[int, doc("number of this page, from 1")]
    pages: int
    damaged: Annotated[int, doc("runs that are stored and cannot be read")]
    runs: Annotated[list[RunSummary], doc("of this page, the newest first")]


class RunningNow(Record, frozen=True, kw_only=True):
    """A run under way, with how long it has been."""

    running: Running
    elapsed_s: Seconds


class RunningRuns(Record, frozen=True, kw_only=True):
    """`/api/running`: runs that are going on."""

    schema_version: int = SCHEMA_VERSION
    running: Annotated[list[RunningNow], doc("the newest first")]


class Series(Record, frozen=True, kw_only=True):
    """Runs that may be looked at beside each other."""

    kind: str
    fingerprint: Annotated[str, doc("of the machine and settings that they share")]
    runs: Annotated[list[PastRun], doc("the oldest first")]


class History(Document, frozen=True, kw_only=True):
    """`/api/history?target=…`: how a target did over time."""

    target: str
    series: Annotated[list[Series], doc("one for each kind of run that measured it")]


class Refused(Record, frozen=True, kw_only=True):
    """What an address under `/api` answers with when it cannot; the status is 400, 404, 409, 422, 500 or 503."""

    error: Annotated[str, doc("what is wrong and what to do, in one sentence")]


def running_now(running: list[Running]) -> list[RunningNow]:
    """With how long each has been."""
    return [RunningNow(running=one, elapsed_s=elapsed_s(one)) for one in running]
