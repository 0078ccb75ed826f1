from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.loading.model import LoaderModel
from pyrometer.loading.settings import LoaderSettings
from pyrometer.tuning.loader.search import COUNTS, Space, knee, next_candidate, pick
from pyrometer.tuning.loader.turn import Round, Turn

NONE = LoaderSettings()


def simulated(model, settings, noise=1.0, per_worker=0):
    """A turn as a machine would show it that obeys the model."""
    step_s = model.step_s(settings.num_workers) * noise
    wait_s = max(0.0, step_s - model.compute_s)
    seen = LoaderModel(
        batch_s=model.batch_s,
        batch_cpu_s=model.batch_cpu_s,
        receive_s=model.receive_s if settings.num_workers else 0.0,
        compute_s=model.compute_s,
        compute_cpu_s=model.compute_cpu_s,
        cpus=model.cpus,
    )
    return Turn(
        settings=settings,
        rounds=[Round(1, step_s, wait_s, False)] * 4,
        start_s=0.0,
        model=seen,
        worker_busy=1.0,
        per_worker_bytes=per_worker,
    )


def searched(model, before=NONE, refused=lambda _: None, max_workers=64, noises=None):
    turns = []
    space = Space(before=before, max_workers=max_workers, refused=refused)
    while (candidate := next_candidate(turns, space)) is not None:
        noise = next(noises) if noises else 1.0
        turns.append(simulated(model, candidate, noise))
        assert len(turns) < 20
    return turns, space


def chosen(turns, space):
    return pick(turns, space).settings.num_workers


models = st.builds(
    LoaderModel,
    batch_s=st.floats(1e-4, 0.5),
    batch_cpu_s=st.just(0.0),
    overhead_s=st.floats(0, 1e-3),
    receive_s=st.floats(0, 1e-3),
    compute_s=st.floats(0, 0.1),
    compute_cpu_s=st.floats(0, 0.1),
    cpus=st.floats(1, 32),
)


@given(models, st.floats(0, 1), st.sampled_from([0, 1, 2, 4, 8]))
def test_the_search_ends_near_the_best_of_all_settings(model, cpu_share, workers):
    from msgspec.structs import replace

    model = replace(model, batch_cpu_s=cpu_share * model.batch_s)
    before = LoaderSettings().with_workers(workers)
    turns, space = searched(model, before)
    best_s = min(model.step_s(count) for count in (*COUNTS, workers))
    assert pick(turns, space).batch_s <= 1.12 * best_s
    assert len(turns) <= 12


@given(st.floats(0.001, 0.5), st.floats(0.001, 0.1), st.integers(0, 2**31))
def test_noise_of_a_few_per_cent_does_not_lead_far_away(batch_s, compute_s, seed):
    import random

    coin = random.Random(seed)
    noises = iter(lambda: 1 + coin.uniform(-0.03, 0.03), None)
    model = LoaderModel(batch_s=batch_s, batch_cpu_s=0.0, compute_s=compute_s, cpus=4)
    turns, space = searched(model, noises=noises)
    assert model.step_s(chosen(turns, space)) <= 1.2 * min(model.step_s(count) for count in COUNTS)


@pytest.mark.parametrize(
    ("batch_s", "compute_s", "expected"),
    [(0.064, 0.020, {3, 4}), (0.500, 0.02, {24, 32}), (0.001, 0.02, {0, 1})],
)
def test_the_knee_is_found_in_few_turns(batch_s, compute_s, expected):
    model = LoaderModel(batch_s=batch_s, batch_cpu_s=0.0, compute_s=compute_s, cpus=64)
    turns, space = searched(model)
    assert chosen(turns, space) in expected
    assert len(turns) <= 7


def test_workers_beyond_the_cpus_are_not_tried_far_where_batches_need_cpus():
    model = LoaderModel(batch_s=0.04, batch_cpu_s=0.04, compute_s=0.001, cpus=2)
    turns, space = searched(model)
    assert chosen(turns, space) == 2
    assert max(turn.settings.num_workers for turn in turns) <= 4


def test_refused_settings_are_not_tried():
    model = LoaderModel(batch_s=0.5, batch_cpu_s=0.0, compute_s=0.01, cpus=4)
    turns, space = searched(model, refused=lambda one: "too large" if one.num_workers > 3 else None)
    assert chosen(turns, space) == knee(turns, space) == 3
    assert max(turn.settings.num_workers for turn in turns) == 3


@pytest.mark.parametrize("workers", [1, 4])
def test_where_no_workers_are_allowed_the_search_ends_without_any_however_slow_that_is(workers):
    model = LoaderModel(batch_s=0.5, batch_cpu_s=0.0, compute_s=0.01, cpus=4)
    before = LoaderSettings().with_workers(workers)
    turns, _ = searched(model, before, refused=lambda one: "too large" if one.num_workers else None)
    space = Space(before=before, max_workers=64, refused=lambda one: "too large" if one.num_workers else None)
    assert chosen(turns, space) == 0


def test_the_limit_on_workers_is_kept_but_the_loaders_own_number_is_measured():
    model = LoaderModel(batch_s=0.5, batch_cpu_s=0.0, compute_s=0.01, cpus=4)
    turns, _ = searched(model, LoaderSettings(num_workers=9, prefetch_factor=2), max_workers=3)
    assert turns[0].settings.num_workers == 9
    assert max(turn.settings.num_workers for turn in turns[1:]) == 3


def test_the_smaller_setting_is_taken_when_both_are_as_fast():
    model = LoaderModel(batch_s=0.02, batch_cpu_s=0.0, compute_s=0.02, cpus=4)
    turns, space = searched(model, LoaderSettings(num_workers=8, prefetch_factor=2))
    assert chosen(turns, space) == 1


def test_settings_without_a_model_are_measured_one_by_one():
    turns = []
    space = Space(before=LoaderSettings(), max_workers=8, refused=lambda _: None)
    model = LoaderModel(batch_s=0.08, batch_cpu_s=0.0, compute_s=0.02, cpus=4)
    while (candidate := next_candidate(turns, space)) is not None:
        turn = simulated(model, candidate)
        turns.append(Turn(settings=candidate, rounds=turn.rounds, start_s=0.0))
    assert chosen(turns, space) in {3, 4}


@pytest.mark.parametrize("by_epoch", [True, False])
def test_kept_workers_are_tried_where_the_start_of_workers_is_all_that_is_against_them(by_epoch):
    def turn(workers, batch_s, start_s):
        round_s = batch_s if by_epoch else batch_s - start_s / 8
        rounds = [Round(1, round_s, round_s, False)] * 4
        settings = NONE.with_workers(workers)
        return Turn(settings, rounds, start_s, epoch_batches=8, by_epoch=by_epoch)

    turns = [turn(0, 0.010, 0.010), turn(1, 0.012, 0.02), turn(2, 0.014, 0.08)]
    loader_settings = next_candidate(turns, Space(before=NONE, max_workers=2, refused=lambda _: None))
    assert loader_settings == LoaderSettings(num_workers=2, prefetch_factor=2, persistent_workers=True)
