"""The integer program against trying everything."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrometer.tuning.checkpointing.choosing import Wish, choose, every_k_choices, switching_order
from pyrometer.tuning.checkpointing.model import Again, Burst, Hold, Kept, Option, StepModel
from pyrometer.tuning.checkpointing.solve import (
    cheapest,
    choice_of,
    frontier,
    lowest,
)


def random_model(rng):
    times, modules, storages = rng.randint(3, 24), rng.randint(1, 5), rng.randint(1, 10)
    since = [rng.randrange(times) for _ in range(storages)]

    def hold():
        storage = rng.randrange(storages)
        modules_of = frozenset(rng.sample(range(modules), rng.randint(0, modules)))
        return Hold(storage, rng.randint(since[storage], times), modules_of)

    def option(module, policy):
        starts = [rng.randrange(times) for _ in range(rng.randint(0, 3))]
        return Option(
            module,
            policy,
            rng.randint(1, 100) / 100,
            tuple(Kept(rng.randrange(storages), rng.randint(0, times)) for _ in range(rng.randint(0, 3))),
            tuple(Again(rng.randint(1, 60), start, rng.randint(start, times)) for start in starts),
            tuple(Burst(rng.randrange(times), rng.randint(1, 80)) for _ in range(rng.randint(0, 2))),
        )

    pairs = [tuple(rng.sample(range(modules), 2)) for _ in range(rng.randint(0, 2)) if modules > 1]
    return StepModel(
        fixed=np.array([rng.randint(0, 50) for _ in range(times)]),
        nbytes=np.array([rng.randint(1, 100) for _ in range(storages)]),
        since=np.array(since),
        natural=np.array([rng.randint(start, times) for start in since]),
        holds=tuple(hold() for _ in range(rng.randint(0, 16))),
        options=tuple(
            option(module, policy)
            for module in range(modules)
            for policy in ["full", "keep"][: rng.randint(1, 2)]
        ),
        conflicts=frozenset(pairs) | frozenset((b, a) for a, b in pairs),
    )


models = st.randoms(use_true_random=False).map(random_model)


def exhaustive(model, limit_bytes):
    """`cheapest` by trying everything; for small models."""
    best = None
    for chosen in allowed_sets(model):
        choice = choice_of(model, chosen)
        if choice.peak_bytes <= limit_bytes and (best is None or choice.seconds < best.seconds):
            best = choice
    return best


def allowed_sets(model, chosen=(), start=0):
    yield chosen
    for index in range(start, len(model.options)):
        extended = (*chosen, index)
        if model.allowed(extended):
            yield from allowed_sets(model, extended, index + 1)


def least_peak(model):
    return min(model.peak(chosen) for chosen in allowed_sets(model))


@given(models, st.floats(0, 1))
def test_the_cheapest_choice_is_that_of_trying_everything(model, share):
    least = least_peak(model)
    limit = int(least + (model.peak() - least) * share)
    choice, best = cheapest(model, limit), exhaustive(model, limit)
    assert choice is not None
    assert model.allowed(choice.options)
    assert choice.peak_bytes <= limit
    assert choice.proven
    assert choice.seconds == pytest.approx(best.seconds)


@given(models)
def test_the_least_peak_is_that_of_trying_everything_and_nothing_is_below(model):
    least = least_peak(model)
    assert lowest(model).peak_bytes == least
    assert cheapest(model, least - 1) is None


@settings(max_examples=30)
@given(models, st.floats(0, 2))
def test_a_limit_of_time_is_kept(model, limit_s):
    choice = lowest(model, limit_s)
    assert choice.seconds <= limit_s + 1e-6
    quick = [c for c in allowed_sets(model) if model.seconds(c) <= limit_s]
    assert choice.peak_bytes == min(model.peak(chosen) for chosen in quick)


@settings(max_examples=30)
@given(models)
def test_the_frontier_rises_in_time_and_falls_in_bytes_and_ends_at_the_least_peak(model):
    points = frontier(model)
    assert points[0].options == () or points[0].peak_bytes < model.peak()
    assert points[-1].peak_bytes == least_peak(model)
    for earlier, later in pairwise(points):
        assert later.peak_bytes < earlier.peak_bytes
        assert later.seconds >= earlier.seconds
        assert later.seconds == pytest.approx(exhaustive(model, later.peak_bytes).seconds)


@given(models)
def test_no_plan_is_worse_than_every_kth_block(model):
    modules = sorted({option.module for option in model.options})
    blocks = [
        module for module in modules if not any((module, other) in model.conflicts for other in modules)
    ]
    for _, by_hand in every_k_choices(model, blocks):
        assert cheapest(model, by_hand.peak_bytes).seconds <= by_hand.seconds + 1e-9


def test_a_sum_of_bytes_would_choose_wrongly_where_the_peak_moves():
    # Module 0 keeps most, but what it keeps is gone at the second height.
    model = StepModel(
        fixed=np.array([0, 0, 60, 0]),
        nbytes=np.array([50, 40]),
        since=np.array([0, 0]),
        natural=np.array([1, 1]),
        holds=(Hold(0, 2, frozenset({0})), Hold(1, 3, frozenset({1}))),
        options=(Option(0, "full", 1.0), Option(1, "full", 2.0)),
    )
    assert model.peak() == 100
    assert cheapest(model, 95).options == (1,)


def test_strategies_by_hand_take_the_quickest_that_fits_or_the_least_peak():
    model = StepModel(
        fixed=np.array([0, 0]),
        nbytes=np.array([10, 20, 30]),
        since=np.array([0, 0, 0]),
        natural=np.array([1, 1, 1]),
        holds=tuple(Hold(i, 2, frozenset({i})) for i in range(3)),
        options=tuple(Option(i, "full", 1.0 + i / 10) for i in range(3)),
    )
    low = StepModel(model.fixed, model.nbytes, model.since, np.array([0, 0, 0]), model.holds, model.options)
    fitting = choose(low, Wish(30, None, "every-k"), [0, 1, 2], 30, math.inf)
    assert (fitting.options, fitting.peak_bytes) == ((0, 2), 20)
    beyond = choose(low, Wish(5, 1.0, "every-k"), [0, 1, 2], -1, 1.5)
    assert beyond.options == (0,)
    assert [low.options[index].module for index in switching_order(low, [0, 1, 2])] == [2, 1, 0]
    adaptive = choose(low, Wish(30, None, "adaptive"), [0, 1, 2], 30, math.inf)
    assert adaptive.options == (2,)
    assert choice_of(low, [1]).peak_bytes == 40
