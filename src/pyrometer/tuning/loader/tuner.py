"""One tuning: its turns, its limits and its time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from msgspec.structs import asdict
from torch.utils.data import DataLoader

from pyrometer.bench.stage import Progress
from pyrometer.evidence.options import silent
from pyrometer.hardware.cpu import usable_cpus
from pyrometer.loading.failure import WorkersRefusedError
from pyrometer.loading.loader import settings_of
from pyrometer.loading.settings import LoaderSettings
from pyrometer.quantity import Seconds, format_bytes
from pyrometer.tuning.loader.consumers import Consumer
from pyrometer.tuning.loader.limits import Limits, predicted_bytes, repeats_itself
from pyrometer.tuning.loader.record import LoaderGain, LoaderTuning, TriedSettings
from pyrometer.tuning.loader.running import TurnRunner
from pyrometer.tuning.loader.search import (
    Space,
    contenders,
    has_legal,
    knee,
    next_candidate,
    pick,
    predicted_s,
    size,
)
from pyrometer.tuning.loader.turn import Turn
from pyrometer.tuning.loader.verifying import FIRST_LOOK, not_slower, prove
from pyrometer.tuning.loader.wording import code_to_use, sentence_of

MIN_SEARCH_SHARE, MAX_SEARCH_SHARE = 0.3, 0.6
MIN_WINDOW_S, MAX_WINDOW_S = 0.1, 1.0
TURNS_PER_BUDGET = 60
NUM_REPEATS = 2
PROOF_ROUNDS = 2
"""Rounds per turn of a proof: many short turns say more than few long ones. One is enough for a large effect."""

LARGE_EFFECT = math.log(1.5)


@dataclass
class Tuner:
    """One tuning under way; see `tune_loader` for what it is given."""

    loader: DataLoader[Any]
    consumer: Consumer
    budget_s: Seconds
    margin: float
    limits: Limits
    max_workers: int | None = None
    progress: Progress = silent
    now_s: Callable[[], Seconds] = time.perf_counter
    turns: list[Turn] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        cpus = usable_cpus()
        self.before = settings_of(self.loader)
        window_s = min(max(self.budget_s / TURNS_PER_BUDGET, MIN_WINDOW_S), MAX_WINDOW_S)
        self.runner = TurnRunner(self.loader, self.consumer, window_s, cpus)
        self.space = Space(
            before=self.before,
            max_workers=min(64, max(16, int(4 * cpus))) if self.max_workers is None else self.max_workers,
            refused=lambda settings: self.limits.refusal(settings, self.turns),
            can_pin=self.consumer.waits_for_device and torch.accelerator.is_available(),
            margin=self.margin,
        )
        self._predicted: dict[LoaderSettings, Seconds | None] = {}
        self._turn_s: dict[LoaderSettings, Seconds] = {}
        self._cut_short = False
        self._began_s = self.now_s()

    def tuned(self) -> LoaderTuning:
        """Search, prove, report."""
        self._search()
        self._repeat()
        untried = next_candidate(self.turns, self.space) if self._cut_short else None
        chosen = pick(self.turns, self.space).settings
        gain = self._proved(chosen)
        best = self._decided(chosen, gain)
        if gain is None and best != chosen:
            untried = chosen
        elapsed_s = self.now_s() - self._began_s
        return LoaderTuning(
            before=self.before,
            best=best,
            tried=[self._row(turn) for turn in self.turns] + self._refused_rows(),
            gain=gain,
            knee=knee(self.turns, self.space),
            sentence=sentence_of(self.before, best, gain, self.turns, untried),
            use=code_to_use(best, self.loader),
            step_s=self.runner.compute_s or 0.0,
            elapsed_s=elapsed_s,
            notes=self._notes(best, untried),
        )

    def _search(self) -> None:
        candidate: LoaderSettings | None = self.before
        while candidate is not None:
            self._tell(candidate.label)
            self._try(candidate)
            if len(self.turns) == 1:
                self._look_at_sharding()
            if self._is_late() and has_legal(self.turns, self.space):
                self._cut_short = True
                return
            candidate = next_candidate(self.turns, self.space)

    def _repeat(self) -> None:
        """Measure again what cannot be told apart yet: a machine that was busy for a moment must not decide."""
        for _ in range(NUM_REPEATS):
            close = contenders(self.turns, self.space)
            for turn in close if len(close) > 1 else []:
                if self._is_late():
                    return
                self._tell(f"{turn.settings.label} again")
                place = next(n for n, one in enumerate(self.turns) if one.settings == turn.settings)
                self.turns[place] = self.turns[place].pooled(self._run(turn.settings))

    def _is_late(self) -> bool:
        """Whether the rest of the time is needed for the proof: the first look of it, if that can be had at all."""
        used_s = self.now_s() - self._began_s
        if used_s < MIN_SEARCH_SHARE * self.budget_s or (len(self.turns) < 3 and used_s < self.budget_s / 2):
            return False
        best, own = pick(self.turns, self.space), self.turns[0]
        if best.settings == self.before:
            # There is nothing to prove so far: all of the time is for finding something.
            return self.budget_s - used_s < max(self._turn_s.values())
        if used_s < MAX_SEARCH_SHARE * self.budget_s and best.interval_s[1] >= own.interval_s[0]:
            return False  # a gain that is not even clear here is hardly proved later; something else may bring more
        sides = {self.before, best.settings}
        # Half as much again: a machine that gets busy must not leave it unproved.
        proof_s = 1.5 * FIRST_LOOK * sum(self._turn_s[side] for side in sides)
        if self.space.refused(self.before) is not None:
            proof_s = 0.0
        return used_s > MAX_SEARCH_SHARE * self.budget_s or self.budget_s - used_s < proof_s

    def _try(self, settings: LoaderSettings) -> None:
        self._predicted[settings] = predicted_s(settings, self.turns) if self.turns else None
        try:
            self.turns.append(self._run(settings))
        except WorkersRefusedError as error:
            if settings == self.before:
                raise
            self.limits.workers_refused = str(error)

    def _run(self, settings: LoaderSettings) -> Turn:
        began_s = self.now_s()
        turn = self.runner.run(settings)
        self._turn_s[settings] = self.now_s() - began_s
        return turn

    def _look_at_sharding(self) -> None:
        """An iterable-style dataset may leave it to its workers to share the work, or forget to."""
        if max(self.space.max_workers, self.before.num_workers) < 2:
            return
        try:
            self.limits.one_worker_only = repeats_itself(self.loader) is True
        except WorkersRefusedError as error:
            self.limits.workers_refused = str(error)

    def _proved(self, chosen: LoaderSettings) -> LoaderGain | None:
        if chosen == self.before or self.space.refused(self.before) is not None:
            return None
        self._tell(f"comparing {chosen.label} with {self.before.label}")
        deadline_s = self._began_s + self.budget_s
        times_s = {turn.settings: turn.batch_s for turn in self.turns}
        is_large = abs(math.log(times_s[chosen] / times_s[self.before])) > LARGE_EFFECT
        rounds = 1 if is_large else PROOF_ROUNDS
        return prove(
            lambda settings: self.runner.run(settings, rounds),
            self.before,
            chosen,
            margin=self.margin,
            deadline_s=deadline_s,
            now_s=self.now_s,
        )

    def _decided(self, chosen: LoaderSettings, gain: LoaderGain | None) -> LoaderSettings:
        """The chosen setting where it is proved faster, or smaller and not slower, or the old one is not allowed."""
        if self.space.refused(self.before) is not None:
            return chosen
        if gain is None:
            return self.before
        smaller = size(chosen) < size(self.before)
        is_proved = gain.outcome == "faster" or (smaller and not_slower(gain, self.margin))
        return chosen if is_proved else self.before

    def _row(self, turn: Turn) -> TriedSettings:
        low_s, high_s = turn.interval_s
        return TriedSettings(
            **asdict(turn.settings),
            batch_s=turn.batch_s,
            low_s=low_s,
            high_s=high_s,
            predicted_s=self._predicted.get(turn.settings),
            wait_fraction=turn.wait_fraction,
            start_s=turn.start_s,
            memory_bytes=turn.memory_bytes,
            refused=self.limits.refusal(turn.settings, self.turns),
        )

    def _refused_rows(self) -> list[TriedSettings]:
        """What the search would have gone to, had it been allowed: one, two, and the knee of an unlimited search."""
        free = knee(self.turns, Space(self.before, self.space.max_workers, lambda _: None))
        rows = []
        for count in sorted({1, 2, free}):
            settings = self.before.with_workers(count)
            reason = self.limits.refusal(settings, self.turns)
            measured = any(turn.settings == settings for turn in self.turns)
            if count <= self.space.max_workers and reason is not None and not measured:
                memory = predicted_bytes(settings, self.turns)
                rows.append(TriedSettings(**asdict(settings), memory_bytes=memory, refused=reason))
        return rows

    def _notes(self, best: LoaderSettings, untried: LoaderSettings | None) -> list[str]:
        notes = []
        if untried is not None:
            notes.append(
                f"no time was left to try {untried.label}; more time may find something faster still"
            )
        limit, workers = self.limits.max_memory_bytes, self.before.num_workers
        if any(turn.model is None for turn in self.turns):
            notes.append(
                "what a batch costs in a worker could not be timed; settings were measured, not predicted"
            )
        if limit is not None and best != self.before and self.space.refused(self.before) is not None:
            notes.append(f"the loader as it was needs more than the {format_bytes(limit)} that are allowed")
        if best.persistent_workers and not self.before.persistent_workers:
            notes.append(
                "persistent workers keep their copy of the dataset: changes to it between epochs do not reach them"
            )
        if self.limits.one_worker_only and workers > 1:
            notes.append(
                f"each of the loader's {workers} workers yields all samples: each comes {workers} times"
            )
        return notes

    def _tell(self, what: str) -> None:
        self.progress(min(1.0, (self.now_s() - self._began_s) / self.budget_s), what)
