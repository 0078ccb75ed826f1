"""Births and deaths of storages as programs of many kinds leave them, without running any."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pyrometer.memory.leaks.cohorts import Birth

SIZE = 1024


def rolling(rng, steps):
    """A window of fixed length, by any container."""
    length = rng.integers(1, 2 * steps // 3)
    return [Birth(step, "rolling", SIZE, died(step + length, steps)) for step in range(steps)]


def epochs(rng, steps):
    """A list that is cleared at the end of an epoch, which may begin anywhere."""
    length = rng.integers(2, 2 * steps // 3)
    phase = rng.integers(length)
    ends = [length * ((step + phase) // length + 1) - phase for step in range(steps)]
    return [Birth(step, "epochs", SIZE, died(end, steps)) for step, end in enumerate(ends)]


def random_eviction(rng, steps):
    """A pool of fixed size whose entries are replaced at random."""
    pool, deaths = [], [None] * steps
    size = rng.integers(1, steps // 3)
    for step in range(steps):
        if len(pool) == size:
            deaths[pool.pop(rng.integers(size))] = step
        pool.append(step)
    return [Birth(step, "pool", SIZE, death) for step, death in enumerate(deaths)]


def shapes(rng, steps):
    """A cache over few shapes, which come at random."""
    number = rng.integers(2, steps // 5)
    seen, births = set(), []
    for step in range(steps):
        shape = rng.integers(number)
        if shape not in seen:
            births.append(Birth(step, "shapes", SIZE * (1 + int(shape)), None))
            seen.add(shape)
    return births


def jittery_queue(rng, steps):
    """A queue that is filled and drained at the same mean rate, and never gets long."""
    queue, births = [], []
    for step in range(steps):
        for _ in range(rng.integers(0, 3)):
            if len(queue) < 8:
                births.append([step, None])
                queue.append(births[-1])
        for _ in range(rng.integers(0, 3)):
            if queue:
                queue.pop(0)[1] = step + 1
    return [
        Birth(born, "queue", SIZE, gone if gone is not None and gone < steps else None)
        for born, gone in births
    ]


def random_lives(rng, steps):
    """Each lives as long as it happens to, some quite long."""
    lives = rng.geometric(1 / rng.uniform(1, steps / 12), steps)
    return [Birth(step, "lives", SIZE, died(step + int(life), steps)) for step, life in enumerate(lives)]


def best_so_far(rng, steps):
    """The best few are kept."""
    number = rng.integers(1, 9)
    scores = rng.normal(size=steps)
    best, deaths = [], [None] * steps
    for step in range(steps):
        best.append(step)
        if len(best) > number:
            worst = min(best, key=lambda one: scores[one])
            best.remove(worst)
            deaths[worst] = step
    return [Birth(step, "best", SIZE, death) for step, death in enumerate(deaths) if death != step]


def built_early(rng, steps):
    """State that is built when it is first needed, in the first third."""
    return [
        Birth(int(step), "state", SIZE, None) for step in rng.integers(0, steps // 3, rng.integers(1, 12))
    ]


def built_late(rng, steps):
    """One or two things that come late and stay."""
    return [Birth(int(step), "late", SIZE, None) for step in rng.integers(0, steps, rng.integers(1, 3))]


def random_lengths(rng, steps):
    """One tensor that is replaced by one of another length each step."""
    return [
        Birth(step, "lengths", int(size), died(step + 1, steps))
        for step, size in enumerate(rng.integers(1, 512, steps) * 4)
    ]


CLEAN = (
    rolling,
    epochs,
    random_eviction,
    shapes,
    jittery_queue,
    random_lives,
    best_so_far,
    built_early,
    built_late,
    random_lengths,
)


def every_step(rng, steps):
    return [Birth(step, "list", SIZE, None) for step in range(steps)]


def every_few_steps(rng, steps):
    period, phase = rng.integers(2, 11), rng.integers(10)
    return [Birth(step, "few", SIZE, None) for step in range(steps) if (step + phase) % period == 0]


def at_random(rng, steps):
    share = rng.uniform(0.25, 1)
    return [Birth(step, "random", SIZE, None) for step in range(steps) if rng.random() < share]


def overfull_queue(rng, steps):
    """More goes in than comes out, and the oldest goes first."""
    more = rng.integers(2, 4)
    births = [[step, None] for step in range(steps) for _ in range(more)]
    for step in range(steps):
        births[step][1] = step + 1
    return [Birth(born, "overfull", SIZE, gone) for born, gone in births]


def ever_longer(rng, steps):
    """One tensor that is replaced by a longer one each step."""
    return [Birth(step, "longer", SIZE * (step + 1), died(step + 1, steps)) for step in range(steps)]


def among_others(rng, steps):
    """A leak at a line that also makes what is used for some steps."""
    window = rng.integers(1, 10)
    return [Birth(step, "line", 4 * SIZE, died(step + window, steps)) for step in range(steps)] + [
        Birth(step, "line", SIZE, None) for step in range(steps)
    ]


LEAKING = (every_step, every_few_steps, at_random, overfull_queue, ever_longer, among_others)


def died(step: int, steps: int) -> int | None:
    return int(step) if step < steps else None


def share(
    decide: Callable[[list[Birth]], bool], program: Callable[..., list[Birth]], steps: int, runs: int
) -> float:
    """How often something is said of a kind of program."""
    return float(np.mean([decide(program(np.random.default_rng(run), steps)) for run in range(runs)]))
