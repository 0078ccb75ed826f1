"""What the store lists, kept in memory and brought up to date as runs are stored and pruned.

Runs never change, so that a refresh reads ids, and summaries of ids that are new: a list of thousands of runs is
filtered and cut into pages without asking the database again.
"""

from __future__ import annotations

import re
import threading
import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, NamedTuple

from pyrometer.errors import InputError
from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc
from pyrometer.store.backend import Signature
from pyrometer.store.folder import signature_of
from pyrometer.store.place import Location, is_server, local_folder, shown
from pyrometer.store.run import DamagedRunError, RunSummary, created_at
from pyrometer.store.store import Store

WAIT_S = 2.0
"""How long a page waits for a locked store before it says so."""

PAGE_SIZE = 50
LONGEST_TREND = 20
_SETTLED_S = 0.1
_TRUSTED_S = 10.0
_CODE = re.compile(r"[A-Z]{2,}\d{3}")
_MOST_CODES = 4
"""Of one search: each that is new reads every document."""
_MOST_KEPT = 32
_NOWHERE: Mapping[str, AbstractSet[str]] = MappingProxyType({})


class Filter(Record, frozen=True, kw_only=True):
    """Which runs are asked for; what is empty filters nothing."""

    q: Annotated[
        str,
        doc(
            "words that all occur in id, kind, target, result or commit, in any case, or are codes of findings"
        ),
    ] = ""
    kind: str = ""
    target: Annotated[str, doc("exactly this one")] = ""
    commit: Annotated[str, doc("the beginning of a commit")] = ""


class Found(NamedTuple):
    """One page of the runs that were asked for, the newest first."""

    runs: Sequence[RunSummary]
    total: int
    page: int
    pages: int


class Listing:
    """The summaries of all runs at one moment, the newest first."""

    def __init__(self, runs: list[RunSummary], damaged: int = 0) -> None:
        self.damaged = damaged
        self.runs = sorted(runs, key=lambda run: run.number, reverse=True)
        self.by_id = {run.id: run for run in runs}
        self.kinds = sorted({run.kind for run in runs})
        self._series: dict[tuple[str, str, str], list[RunSummary]] = {}
        for run in reversed(self.runs):
            if run.median_s is not None:
                self._series.setdefault(_terms(run), []).append(run)

    def find(
        self, wanted: Filter, page: int = 1, with_code: Mapping[str, AbstractSet[str]] = _NOWHERE
    ) -> Found:
        """A page of the runs that a filter admits; a number beyond the last page is the last.

        Args:
            wanted: the filter.
            page: number of the page, from 1.
            with_code: the ids of the runs in which a rule found something, by its code.
        """
        return _cut(self._matching(wanted, with_code), page)

    def find_targets(self, q: str, page: int = 1) -> Found:
        """A page of the newest run of each target whose name holds all words, in any case."""
        words = q.casefold().split()
        newest = self._newest.values()
        return _cut([run for run in newest if all(word in run.target.casefold() for word in words)], page)

    def longest_trend(self, target: str) -> list[RunSummary]:
        """The series of a target with the most runs, the oldest first; empty where no step was timed."""
        return self._longest.get(target, [])[-LONGEST_TREND:]

    @cached_property
    def _longest(self) -> dict[str, list[RunSummary]]:
        longest: dict[str, list[RunSummary]] = {}
        for (_, target, _), runs in self._series.items():
            longest[target] = max(longest.get(target, []), runs, key=len)
        return longest

    def _matching(self, wanted: Filter, with_code: Mapping[str, AbstractSet[str]]) -> list[RunSummary]:
        runs, commit = self.runs, wanted.commit.lower()
        if wanted.kind:
            runs = [run for run in runs if run.kind == wanted.kind]
        if wanted.target:
            runs = [run for run in runs if run.target == wanted.target]
        if commit:
            runs = [run for run in runs if (run.commit_sha or "").startswith(commit)]
        for word in wanted.q.split():
            texts, said, having = self._texts, word.casefold(), with_code.get(word.upper(), ())
            runs = [run for run in runs if said in texts[run.id] or run.id in having]
        return runs

    @cached_property
    def _texts(self) -> dict[str, str]:
        """What a search looks through."""
        return {
            run.id: f"{run.id} {run.kind} {run.target} {run.headline} {run.commit_sha or ''}".casefold()
            for run in self.runs
        }

    @property
    def num_targets(self) -> int:
        """How many targets there are."""
        return len(self._newest)

    @cached_property
    def _newest(self) -> dict[str, RunSummary]:
        """The newest run of each target, the newest first."""
        newest: dict[str, RunSummary] = {}
        for run in self.runs:
            newest.setdefault(run.target, run)
        return newest

    def trend(self, run: RunSummary, most: int = LONGEST_TREND) -> list[RunSummary]:
        """Runs of the same kind and target on the same machine up to this one, the oldest first."""
        series = self._series.get(_terms(run), [])
        end = bisect_right(series, run.number, key=lambda summary: summary.number)
        return series[max(0, end - most) : end]


class Index:
    """The listing of one store, refreshed when the store has changed."""

    def __init__(self, location: Location) -> None:
        self._location = location if is_server(location) else Path(location).absolute()
        self.name, self.folder = shown(self._location), local_folder(self._location)
        self._store: Store | None = None
        self._lock = threading.Lock()
        self._listing = Listing([])
        self._with_code: dict[str, tuple[AbstractSet[str], AbstractSet[str]]] = {}
        self._signature: Signature | None = None
        self._read_at: Seconds = float("-inf")

    def store(self) -> Store | None:
        """The store, opened; `None` while there is none.

        Raises:
            StoreError: it cannot be read.
        """
        if not is_server(self._location):  # a folder may be moved away and made anew
            return Store.open_if_there(self._location, wait_s=WAIT_S)
        if self._store is None:
            self._store = Store.open_if_there(self._location, wait_s=WAIT_S)
        return self._store

    def listing(self) -> Listing:
        """What the store holds now.

        Raises:
            StoreError: it cannot be read.
        """
        with self._lock:
            signature = self._sign()
            if self._is_stale(signature):
                self._listing = self._read()
                # What was written in the same moment may not have changed the signature.
                settled = time.time() - _newest_s(signature) > _SETTLED_S
                self._signature = signature if settled else None
                self._read_at = time.monotonic()
            return self._listing

    def with_codes(self, q: str) -> Mapping[str, AbstractSet[str]]:
        """For each word of a search that may be the code of a rule: the ids of the runs in which it found something.

        Runs never change, so that each is looked at once for a code.

        Raises:
            StoreError: it cannot be read.
        """
        codes = {word.upper() for word in q.split() if _CODE.fullmatch(word.upper())}
        return {code: self._having(code) for code in sorted(codes)[:_MOST_CODES]}

    def _having(self, code: str) -> AbstractSet[str]:
        stored, store = self.listing().by_id.keys(), self.store()
        seen, having = self._with_code.get(code, (frozenset(), frozenset()))
        fresh = stored - seen
        if store is None or not fresh:
            return having
        having = (having & stored) | store.with_finding(code, fresh)
        if len(self._with_code) >= _MOST_KEPT:
            self._with_code.clear()
        self._with_code[code] = set(stored), having
        return having

    def _is_stale(self, signature: Signature) -> bool:
        return signature != self._signature or time.monotonic() - self._read_at > _TRUSTED_S

    def _read(self) -> Listing:
        store = self.store()
        if store is None:
            return Listing([])
        ids, known = store.ids(), self._listing.by_id
        if len(ids) == len(known) + self._listing.damaged and known.keys() <= set(ids):
            return self._listing
        fresh = _sound(store, [run_id for run_id in ids if run_id not in known])
        runs = [*(known[run_id] for run_id in ids if run_id in known), *fresh]
        return Listing(runs, damaged=len(ids) - len(runs))

    def _sign(self) -> Signature:
        """Changes whenever something is committed."""
        if not is_server(self._location):
            return signature_of(Path(self._location))
        store = self.store()
        return () if store is None else store.signature()


def _cut(runs: Sequence[RunSummary], page: int) -> Found:
    pages = max(1, -(-len(runs) // PAGE_SIZE))
    page = min(max(page, 1), pages)
    return Found(runs[(page - 1) * PAGE_SIZE : page * PAGE_SIZE], len(runs), page, pages)


def _sound(store: Store, run_ids: list[str]) -> list[RunSummary]:
    """Their summaries; a row that is damaged costs that run and not the list."""
    try:
        return [run for run in store.summaries(run_ids) if _is_dated(run)]
    except (DamagedRunError, InputError):
        if len(run_ids) == 1:
            return []
        middle = len(run_ids) // 2
        return [*_sound(store, run_ids[:middle]), *_sound(store, run_ids[middle:])]


def _is_dated(run: RunSummary) -> bool:
    try:
        created_at(run)
    except DamagedRunError:
        return False
    return True


def _terms(run: RunSummary) -> tuple[str, str, str]:
    return run.kind, run.target, run.fingerprint


def _newest_s(signature: Signature) -> Seconds:
    return max((modified_ns for modified_ns, _ in signature), default=0) * 1e-9
