from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.loading.model import LoaderModel

times = st.floats(1e-5, 1.0)


@pytest.mark.parametrize(
    ("workers", "step_s"), [(0, 0.084), (1, 0.064), (2, 0.032), (3, 0.0213), (4, 0.020), (5, 0.020)]
)
def test_batches_that_wait_for_storage_are_made_as_fast_as_there_are_workers(workers, step_s):
    model = LoaderModel(batch_s=0.064, batch_cpu_s=0.001, compute_s=0.020, cpus=2)
    assert model.step_s(workers) == pytest.approx(step_s, rel=0.01)


def test_batches_that_need_a_cpu_are_made_as_fast_as_there_are_cpus():
    model = LoaderModel(batch_s=0.040, batch_cpu_s=0.040, compute_s=0.001, cpus=2)
    assert model.step_s(2) == model.step_s(8) == pytest.approx(0.0205, abs=0.001)
    assert model.knee(list(range(17))) == 2


def test_handing_over_is_what_tiny_batches_cost():
    model = LoaderModel(batch_s=1e-4, batch_cpu_s=1e-4, overhead_s=5e-4, receive_s=8e-4, cpus=8)
    assert model.knee(list(range(9))) == 0


def test_training_on_the_cpus_that_workers_want_is_slower():
    alone = LoaderModel(batch_s=0.02, batch_cpu_s=0.02, compute_s=0.02, cpus=2)
    busy = LoaderModel(batch_s=0.02, batch_cpu_s=0.02, compute_s=0.02, compute_cpu_s=0.04, cpus=2)
    assert busy.step_s(2) == pytest.approx(0.03)
    assert alone.step_s(2) == pytest.approx(0.02)


@given(times, st.floats(0, 1), times, st.integers(1, 16))
def test_another_worker_never_slows_the_modelled_loader_down(batch_s, cpu_share, compute_s, cpus):
    model = LoaderModel(batch_s=batch_s, batch_cpu_s=cpu_share * batch_s, compute_s=compute_s, cpus=cpus)
    steps = [model.step_s(workers) for workers in range(1, 20)]
    assert steps == sorted(steps, reverse=True)
    assert all(step_s >= compute_s for step_s in steps)


@given(times, st.floats(0, 1), times, st.integers(1, 16))
def test_the_knee_is_as_fast_as_anything_and_nothing_smaller_is(batch_s, cpu_share, compute_s, cpus):
    model = LoaderModel(batch_s=batch_s, batch_cpu_s=cpu_share * batch_s, compute_s=compute_s, cpus=cpus)
    counts = list(range(33))
    knee = model.knee(counts)
    fastest_s = min(model.step_s(count) for count in counts)
    assert model.step_s(knee) <= 1.02 * fastest_s
    assert all(model.step_s(count) > 1.02 * fastest_s for count in range(knee))
