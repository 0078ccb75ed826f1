"""Reading one store for the pages: runs, their reports, comparisons, trends and files."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from pyrometer.dashboard.documents import Series
from pyrometer.dashboard.index import Filter, Found, Index, Listing
from pyrometer.dashboard.week import Shift, shifts
from pyrometer.errors import InputError, StoreError
from pyrometer.report.attaching import MOST_PAST, stored_attachments
from pyrometer.report.attachments import Attachments, PastRun
from pyrometer.report.comparing import compare_stored
from pyrometer.report.documents import Document
from pyrometer.report.guarding import history_document
from pyrometer.report.history import past_runs
from pyrometer.report.history_documents import CompareDocument, GuardHistoryDocument
from pyrometer.report.html import page, render_document
from pyrometer.report.kinds import read_document
from pyrometer.store.marks import Marks
from pyrometer.store.place import Location
from pyrometer.store.run import DamagedRunError, Run, RunSummary
from pyrometer.store.running import Running, list_running
from pyrometer.store.store import Store

V = TypeVar("V")

MOST_PAGES = 6
"""Rendered reports that are kept: going back and forth between a few of them is quick."""

MOST_MEASURED = 200
MOST_SEEN = 2000


class Seen(NamedTuple):
    """What a run found, and on what."""

    codes: list[str]
    machine: str


def machine_words(environment: Mapping[str, Any]) -> str:
    """The machine of a run in a few words: its devices, else its processor.

    >>> machine_words({"cpu": {"model": "AMD EPYC 7763 64-Core Processor"}, "gpus": []})
    'AMD EPYC 7763'
    """
    gpus = [str(gpu.get("name", "")) for gpu in environment.get("gpus") or []]
    if gpus:
        return gpus[0] + (f" ×{len(gpus)}" if len(gpus) > 1 else "")
    model = str((environment.get("cpu") or {}).get("model", ""))
    return re.sub(r"\(R\)|\(TM\)| \d+-Core Processor| Processor| CPU| @.*", "", model).strip()


class StoredRuns:
    """One store, as the dashboard reads it."""

    def __init__(self, location: Location) -> None:
        self._index = Index(location)
        self._pages: Kept[tuple[str, ...], str] = Kept(MOST_PAGES)
        self._measured: Kept[str, Run] = Kept(MOST_MEASURED)
        self._seen: Kept[str, Seen] = Kept(MOST_SEEN)

    @property
    def name(self) -> str:
        """Where it lies, as it may be read by anyone."""
        return self._index.name

    def listing(self) -> Listing:
        """The summaries of all runs.

        Raises:
            StoreError: the store cannot be read.
        """
        return self._index.listing()

    def find(self, asked: Filter, number: int) -> Found:
        """A page of the list.

        Args:
            asked: what was asked for.
            number: of the page, from 1.

        Raises:
            StoreError: the store cannot be read.
        """
        having = {**self._index.with_codes(asked.q)}
        for word in asked.q.split():
            noted = {
                run_id for run_id, note in self.marks().notes.items() if word.casefold() in note.casefold()
            }
            having[word.upper()] = having.get(word.upper(), frozenset()) | noted
        return self.listing().find(asked, number, having)

    def marks(self) -> Marks:
        """Notes and baselines.

        Raises:
            StoreError: they cannot be read.
        """
        store = self._index.store()
        return Marks() if store is None else store.marks()

    def change_marks(self, change: Callable[[Marks], Marks]) -> Marks:
        """Change notes and baselines.

        Raises:
            StoreError: they cannot be read or written.
        """
        return self._store().change_marks(change)

    def seen(self, run_id: str) -> Seen:
        """What a list shows of a run beside its summary; nothing of one that is damaged."""

        def look() -> Seen:
            run = self.run(run_id)
            diagnosis = run.document.get("diagnosis") or {}
            codes = [
                str(one.get("code", ""))
                for one in diagnosis.get("findings") or []
                if one.get("severity") != "info"
            ]
            return Seen(list(dict.fromkeys(codes)), machine_words(run.environment))

        try:
            return self._seen.get(run_id, look)
        except (DamagedRunError, InputError):
            return Seen([], "")

    def week(self) -> list[Shift]:
        """What moved this week, the slowest first."""
        newest: dict[str, RunSummary] = {}
        for run in self.listing().runs:
            if run.median_s is not None:
                newest.setdefault(run.target, run)
        return shifts(
            list(newest.values()),
            lambda run: self.listing().trend(run, MOST_PAST),
            self._pair,
            self.marks().baselines,
            datetime.now(UTC),
        )

    def running(self) -> list[Running]:
        """The runs that are going on, the newest first."""
        return list_running(self._index.folder)

    def run(self, run_id: str) -> Run:
        """A run with its document.

        Raises:
            InputError: it is damaged.
            StoreError: the store cannot be read.
        """
        try:
            return self._store().load(run_id)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(f"run {run_id} is damaged in the database: {error}") from error

    def report(self, run_id: str) -> str:
        """The report of a run, as `pyrometer show` writes it.

        Raises:
            InputError: it is damaged, or of a kind that has no report.
            StoreError: the store cannot be read.
        """

        def render() -> str:
            run = self.run(run_id)
            return render_document(run.kind, run.document, stored_attachments(self._store(), run))

        return self._pages.get((run_id,), render)

    def comparison(self, a: str, b: str) -> CompareDocument:
        """Two runs beside each other.

        Raises:
            InputError: one of them is damaged, or holds no measurement.
            IncomparableError: they were taken under different conditions.
            StoreError: the store cannot be read.
        """
        return self._compared(a, b)[0]

    def comparison_page(self, a: str, b: str) -> str:
        """The page of two runs beside each other; raises as `comparison` does."""
        return self._pages.get((a, b), lambda: page(*self._compared(a, b)))

    def history(self, target: str) -> list[Series]:
        """How a target did, a series for each kind of run that measured it, the most recent kind first.

        Raises:
            StoreError: the store cannot be read.
        """
        newest: dict[str, RunSummary] = {}
        for run in self.listing().runs:
            if run.target == target and run.median_s is not None:
                newest.setdefault(run.kind, run)
        return [self._series(run) for run in newest.values()]

    def guard(self) -> GuardHistoryDocument:
        """The history of the suite that the guard recorded.

        Raises:
            InputError: no commit is recorded.
            StoreError: the store cannot be read.
        """
        return history_document(self._store())

    def guard_page(self) -> str:
        """The page of it, made anew when a run is stored or deleted, or a change accepted."""
        newest = self.listing().runs[0].id if self.listing().runs else ""
        accepted = sorted(self.marks().accepted)
        key = ("guard", newest, str(len(self.listing().runs)), *accepted)
        return self._pages.get(key, lambda: page(self.guard()))

    def document(self, run_id: str) -> Document:
        """The document of a run.

        Raises:
            InputError: it is damaged, or of an unknown kind.
            StoreError: the store cannot be read.
        """
        run = self.run(run_id)
        return read_document(run.kind, run.document)

    def file(self, run_id: str, name: str) -> Iterator[bytes]:
        """A file that is kept with a run, piece by piece.

        Raises:
            InputError: the run has no such file, or it is missing.
            StoreError: the store cannot be read.
        """
        store = self._store()
        parts = store.file_parts(store.load(run_id), name)
        try:
            first = next(parts, b"")
        except OSError as error:
            raise InputError(
                f"{name}: the file of run {run_id} is missing; the store names it all the same"
            ) from error
        return chain([first], parts)

    def _store(self) -> Store:
        store = self._index.store()
        if store is None:
            raise StoreError(f"{self.name}: no runs are stored here")
        return store

    def _compared(self, a: str, b: str) -> tuple[CompareDocument, Attachments]:
        return compare_stored(self._store(), self.run(a), self.run(b))

    def _pair(self, before: RunSummary, after: RunSummary) -> list[PastRun]:
        read = [self._measured_run(run.id) for run in (before, after)]
        return past_runs([run for run in read if run is not None])

    def _series(self, newest: RunSummary) -> Series:
        alike = [self._measured_run(run.id) for run in self.listing().trend(newest, MOST_PAST)]
        runs = past_runs([run for run in alike if run is not None])
        return Series(kind=newest.kind, fingerprint=newest.fingerprint, runs=runs)

    def _measured_run(self, run_id: str) -> Run | None:
        """A run without all of its document that a history does not ask for; `None` when it is damaged."""

        def load() -> Run:
            run = self.run(run_id)
            measurement = (run.document.get("evidence") or {}).get("measurement")
            measured = {"evidence": {"measurement": measurement}}
            return msgspec.structs.replace(run, document=measured, environment={})

        try:
            return self._measured.get(run_id, load)
        except (DamagedRunError, InputError):
            return None


K = TypeVar("K")


class Kept(Generic[K, V]):
    """The last few values that were made; for several threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._values: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The value of a key, made when it is not kept; what raises is not."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._most:
                self._values.popitem(last=False)
        return value
