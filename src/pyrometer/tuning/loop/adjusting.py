"""Settings that the loop changes as it runs: each on trial first, measured before and after, and undone where it did not pay."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Literal, TypeAlias

import msgspec

from pyrometer.errors import InputError
from pyrometer.hardware.cpu import allowed_cpus
from pyrometer.loading.settings import LoaderSettings
from pyrometer.quantity import Seconds, format_percent
from pyrometer.tuning.batching.micro import SEES_BATCH, WEIGHTED
from pyrometer.tuning.loop.batches import PositionedBatches
from pyrometer.tuning.loop.ranks import world
from pyrometer.tuning.loop.record import Adjustment, Fate, Knob
from pyrometer.tuning.loop.step import LoopStep
from pyrometer.tuning.loop.timing import MIN_STEPS, StepTimes

Adjustable: TypeAlias = Literal["memory", "loader"]
ADJUSTABLE: tuple[Adjustable, ...] = ("memory", "loader")
MEMORY: tuple[Adjustable, ...] = ("memory",)
TRIAL_STEPS = 20
"""Steps after which smaller micro-batches have shown their time."""

MIN_WAIT = 0.1
"""Share of the step that waits for data, from which on the loader's settings are tried."""

MAX_PREFETCH = 8

log = logging.getLogger(__name__)


class Adjusting:
    """Changes settings, and keeps the record of it."""

    def __init__(
        self,
        allowed: Collection[Adjustable],
        step: LoopStep,
        batches: PositionedBatches,
        times: StepTimes,
    ) -> None:
        unknown = set(allowed) - set(ADJUSTABLE)
        if isinstance(allowed, str) or unknown:
            raise InputError(f"adjust: got {allowed!r}; legal are collections of {', '.join(ADJUSTABLE)}")
        self.made: list[Adjustment] = []
        self.untold: list[Adjustment] = []
        self._allowed = allowed
        self._step = step
        self._batches = batches
        self._times = times
        self._on_trial: dict[str, int] = {}  # by kind, which of those that were made
        self._loader_before: LoaderSettings | None = None
        self._loader_done = False
        self._needed = 1  # micro-batches, with half of which memory ran out twice

    def state_dict(self) -> dict[str, int | None]:
        """What is set now."""
        settings = self._batches.settings
        return {
            "micro_batches": self._step.micro_batches,
            "num_workers": settings.num_workers if settings else None,
            "prefetch_factor": settings.prefetch_factor if settings else None,
        }

    def load_state_dict(self, state: dict[str, int | None]) -> None:
        """Set it again; the loader only where it may be adjusted, since else it is as the user gave it."""
        self._step.micro_batches = self._needed = state["micro_batches"] or 1
        settings = self._batches.settings
        if "loader" in self._allowed and settings is not None and state["num_workers"] is not None:
            workers = settings.with_workers(state["num_workers"])
            self._batches.use(msgspec.structs.replace(workers, prefetch_factor=state["prefetch_factor"]))

    def out_of_memory(self, step: int) -> str | None:
        """Halve the micro-batches; what forbids it, or `None` where the step may be run again."""
        reason = self._whole_only()
        if reason is not None:
            return reason
        now = self._step.micro_batches
        trial = self._trial("memory")
        if trial is not None and trial.after < trial.before:
            self._needed = self._step.micro_batches = trial.before
            self._conclude("memory", "undone")
            return None
        if trial is not None:
            self._conclude("memory", "needed")
        if any(one.what == "micro_batches" and one.before == now < one.after for one in self.made):
            self._needed = now * 2
        self._forget_loader_times()
        self._step.micro_batches = now * 2
        self._change(step, "micro_batches", now, now * 2, "memory ran out")
        return None

    def after_step(self, step: int) -> None:
        """Conclude about micro-batches once they have shown their time; slower ones are tried larger again, once."""
        trial = self._trial("memory")
        if trial is None or len(self._times.recent) < TRIAL_STEPS:
            return
        after_s = self._median_s()
        self._conclude("memory", "needed" if trial.after > trial.before else "kept")
        slower = trial.before_s is not None and after_s is not None and after_s > trial.before_s
        if trial.after > trial.before and slower and trial.after > self._needed:
            self._step.micro_batches = trial.before
            reason = "steps were slower, and may fit again"
            self._change(step, "micro_batches", trial.after, trial.before, reason)

    def after_epoch(self, step: int) -> None:
        """Conclude about the loader, and try its next setting where steps wait for data."""
        settings = self._batches.settings
        if "loader" not in self._allowed or settings is None or self._loader_done or world()[1] > 1:
            return
        if len(self._times.recent) < MIN_STEPS:
            return
        trial = self._trial("loader")
        waits = next((phase.share for phase in self._times.phases() if phase.name == "data"), 0.0)
        if trial is not None and not self._is_faster(trial):
            self._loader_done = True
            self._batches.use(self._loader_before or settings)
            self._conclude("loader", "undone")
            return
        if trial is not None:
            self._conclude("loader", "kept")
        if waits >= MIN_WAIT:
            self._try_loader(step, settings, waits)

    def _try_loader(self, step: int, settings: LoaderSettings, waits: float) -> None:
        workers = min(max(1, 2 * settings.num_workers), len(allowed_cpus()))
        prefetch = 2 * (settings.prefetch_factor or 1)
        reason = f"{format_percent(waits, 2)} of the step waits for data"
        self._loader_before = settings
        if workers > settings.num_workers:
            self._batches.use(settings.with_workers(workers))
            self._change(step, "num_workers", settings.num_workers, workers, reason)
        elif prefetch <= MAX_PREFETCH:
            self._batches.use(msgspec.structs.replace(settings, prefetch_factor=prefetch))
            self._change(step, "prefetch_factor", prefetch // 2, prefetch, reason)
        else:
            self._loader_done = True

    def _trial(self, kind: Adjustable) -> Adjustment | None:
        return self.made[self._on_trial[kind]] if kind in self._on_trial else None

    def _change(self, step: int, what: Knob, before: int, after: int, reason: str) -> None:
        self._on_trial["memory" if what == "micro_batches" else "loader"] = len(self.made)
        self.made.append(
            Adjustment(
                step=step, what=what, before=before, after=after, reason=reason, before_s=self._median_s()
            )
        )
        self._times.forget()
        self._say(self.made[-1])

    def _conclude(self, kind: Adjustable, fate: Fate) -> None:
        place = self._on_trial.pop(kind)
        self.made[place] = msgspec.structs.replace(self.made[place], after_s=self._median_s(), fate=fate)
        if fate == "undone":
            self._times.forget()
        self._say(self.made[place])

    def _say(self, adjustment: Adjustment) -> None:
        log.warning("training adjusted: %s", adjustment)
        self.untold.append(adjustment)

    def _forget_loader_times(self) -> None:
        """Steps take another time from now on: a loader on trial has nothing to be compared with, and is undone."""
        if "loader" in self._on_trial:
            place = self._on_trial["loader"]
            self.made[place] = msgspec.structs.replace(self.made[place], before_s=None)

    def _is_faster(self, trial: Adjustment) -> bool:
        """Whether the whole interval of the median lies below what it was."""
        now = self._times.median()
        return now is not None and now.high_s is not None and now.high_s < (trial.before_s or 0.0)

    def _median_s(self) -> Seconds | None:
        median = self._times.median()
        return median.value_s if median is not None else None

    def _whole_only(self) -> str | None:
        """Why batches may not be cut further."""
        if "memory" not in self._allowed:
            return 'adjust= does not allow "memory"'
        if world()[1] > 1:
            return "the other ranks would wait for this one"
        if self._step.micro_batches * 2 > self._step.num_samples:
            return f"a batch of {self._step.num_samples} cannot be cut into {self._step.micro_batches * 2}"
        for part in (part for module in self._step.parts.modules for part in module.modules()):
            if isinstance(part, SEES_BATCH) or (isinstance(part, WEIGHTED) and part.weight is not None):
                return f"{type(part).__name__} gives other results for parts of a batch"
        return None
