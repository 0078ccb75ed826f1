"""Which settings to try next. Pure: what was measured so far in, the next candidate out.

Two points are measured, then the model is asked for its knee; from there the neighbours are tried until none is better. What the
model says of a number of workers rests on the nearest measured one, since contention grows with their number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from pyrometer.loading.model import LoaderModel
from pyrometer.loading.settings import LoaderSettings
from pyrometer.quantity import Seconds
from pyrometer.tuning.loader.turn import Turn

COUNTS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
NO_WAIT = 0.02
"""Upper end of the wait fraction below which nothing is left to gain."""

UNEVEN_WAIT = 0.05
SLOW_START = 0.05
DEEPER = 4


@dataclass(frozen=True)
class Space:
    """What may be tried.

    Attributes:
        before: the loader's own settings.
        max_workers: the most workers.
        refused: says why settings cannot be used, or `None`.
        can_pin: whether pinned memory is of any use.
        margin: a smaller gain is none.
    """

    before: LoaderSettings
    max_workers: int
    refused: Callable[[LoaderSettings], str | None]
    can_pin: bool = False
    margin: float = 0.05

    @property
    def counts(self) -> list[int]:
        """Numbers of workers, rising, that are not refused."""
        own = self.before.num_workers
        numbers = sorted({own, self.max_workers, *(count for count in COUNTS if count <= self.max_workers)})
        return [n for n in numbers if n == own or self.refused(self.before.with_workers(n)) is None]


def next_candidate(turns: Sequence[Turn], space: Space) -> LoaderSettings | None:
    """What to measure next; `None` when the search is over."""
    if not turns:
        return space.before
    for propose in (_second_point, _knee, _neighbour, _in_process, _queue, _kept_workers, _pinned, _allowed):
        settings = propose(turns, space)
        if settings is not None and not _is_tried(settings, turns) and space.refused(settings) is None:
            return settings
    return None


def predicted_s(settings: LoaderSettings, turns: Sequence[Turn]) -> Seconds | None:
    """What the model says of a setting, from the nearest one that was measured."""
    model = _model_near(settings.num_workers, turns)
    return None if model is None else model.step_s(settings.num_workers)


def knee(turns: Sequence[Turn], space: Space) -> int:
    """The smallest number of workers from which on the model promises nothing more."""
    steps = {count: predicted_s(space.before.with_workers(count), turns) for count in space.counts}
    known = {count: step_s for count, step_s in steps.items() if step_s is not None}
    if not known:
        return pick(turns, space).settings.num_workers
    best_s = min(known.values())
    return min(count for count, step_s in known.items() if step_s <= best_s * (1 + space.margin / 2))


def pick(turns: Sequence[Turn], space: Space) -> Turn:
    """The smallest setting that is as fast as the fastest, within the margin."""
    legal = [turn for turn in turns if space.refused(turn.settings) is None] or list(turns[:1])
    fastest_s = min(turn.batch_s for turn in legal)
    near = [turn for turn in legal if turn.batch_s <= fastest_s * (1 + space.margin)]
    return min(near, key=lambda turn: (*size(turn.settings), turn.batch_s))


def has_legal(turns: Sequence[Turn], space: Space) -> bool:
    """Whether anything that was measured may be chosen."""
    return any(space.refused(turn.settings) is None for turn in turns)


def contenders(turns: Sequence[Turn], space: Space) -> list[Turn]:
    """The three fastest settings that their intervals do not tell apart from the fastest; it is one of them."""
    legal = sorted((t for t in turns if space.refused(t.settings) is None), key=lambda turn: turn.batch_s)
    return [turn for turn in legal if turn.interval_s[0] <= legal[0].interval_s[1]][:3]


def size(settings: LoaderSettings) -> tuple[int, int, bool, bool]:
    """What a setting takes from the machine, for an order."""
    return settings.num_workers, settings.capacity, settings.pin_memory, settings.persistent_workers


def _second_point(turns: Sequence[Turn], space: Space) -> LoaderSettings | None:
    """One worker: what a batch costs where nobody disturbs it, and what handing it over costs."""
    if len(turns) > 1 or turns[0].settings.num_workers == 1:
        return None
    return space.before.with_workers(1)


def _knee(turns: Sequence[Turn], space: Space) -> LoaderSettings | None:
    return space.before.with_workers(knee(turns, space))


def _neighbour(turns: Sequence[Turn], space: Space) -> LoaderSettings | None:
    """The next number of workers above the best, unless nothing is left to gain; else the next below."""
    counts, best = space.counts, pick(turns, space)
    place = counts.index(best.settings.num_workers) if best.settings.num_workers in counts else 0
    above = [space.before.with_workers(counts[place + 1])] if place + 1 < len(counts) else []
    below = [space.before.with_workers(counts[place - 1])] if place else []
    if best.highest_wait_fraction < NO_WAIT:
        above = []
    return next((settings for settings in (*above, *below) if not _is_tried(settings, turns)), None)


def _in_process(turns: Sequence[Turn], space: Space) -> LoaderSettings | None:
    """No workers at all, where the model does not rule it out: handing over may cost more than making."""
    alone = space.before.with_workers(0)
    step_s = predicted_s(alone, turns)
    return alone if step_s is None or step_s < 1.3 * pick(turns, space).batch_s else None


def _queue(turns: Sequence[Turn], space: Space) -> LoaderSettings | None:
    """A deeper queue, where workers have time left and the step waits all the same."""
    best = pick(turns, space)
    now = best.settings
    uneven = best.wait_fraction > UNEVEN_WAIT and best.worker_busy is not None and best.worker_busy < 0.85
    if not uneven or not best.model or best.wait_fraction * best.batch_s < 2 * best.model.receive_s:
        return None
    return msgspec.structs.replace(now, prefetch_factor=DEEPER * (now.prefetch_factor or 1))


def _kept_workers(turns: Sequence[Turn], space: Space) -> LoaderSettings | None:
    """Workers that outlive the epoch, where their start matters."""
    best = pick(turns, space)
    if not best.settings.num_workers:
        with_workers = [turn for turn in turns if turn.settings.num_workers]
        if not with_workers:
            return None
        best = min(with_workers, key=lambda turn: turn.batch_s - _start_per_batch_s(turn))
    if best.settings.persistent_workers or _start_per_batch_s(best) < SLOW_START * best.batch_s:
        return None
    return msgspec.structs.replace(best.settings, persistent_workers=True)


def _start_per_batch_s(turn: Turn) -> Seconds:
    return turn.start_s / turn.epoch_batches if turn.epoch_batches else 0.0


def _pinned(turns: Sequence[Turn], space: Space) -> LoaderSettings | None:
    now = pick(turns, space).settings
    return msgspec.structs.replace(now, pin_memory=True) if space.can_pin and not now.pin_memory else None


def _allowed(turns: Sequence[Turn], space: Space) -> LoaderSettings | None:
    """No workers, which may always be, where all that was measured may not."""
    return None if has_legal(turns, space) else space.before.with_workers(0)


def _model_near(num_workers: int, turns: Sequence[Turn]) -> LoaderModel | None:
    """The model of the nearest measured number of workers, with what one worker shows that handing over costs it."""
    known = [turn for turn in turns if turn.model is not None]
    if not known:
        return None
    near = min(known, key=lambda turn: abs(math.log((turn.settings.num_workers + 0.5) / (num_workers + 0.5))))
    model = near.model
    handing = [turn for turn in known if turn.settings.num_workers == 1 and not turn.by_epoch]
    if model is None or not handing or handing[0].model is None:
        return model
    over_s = handing[0].batch_s - max(handing[0].model.step_s(1), 0.0)
    receive_s = max((turn.model.receive_s for turn in known if turn.model), default=0.0)
    return msgspec.structs.replace(model, overhead_s=max(0.0, over_s), receive_s=model.receive_s or receive_s)


def _is_tried(settings: LoaderSettings, turns: Sequence[Turn]) -> bool:
    return any(turn.settings == settings for turn in turns)
