"""Calls like those before are looked up: the same results, counts and checks, with less to do."""

from __future__ import annotations

import threading

import pytest
import torch

from pyrometer.tuning.shapes.buckets import ShapeBuckets
from pyrometer.tuning.shapes.checking import PaddingError
from pyrometer.tuning.shapes.fitting import Fitting
from pyrometer.tuning.shapes.record import AxisPlan, BucketPlan


def settled(runner, *calls):
    """Buckets after as many calls of each kind as they time."""
    for call in calls:
        for _ in range(6):
            runner(**call)
    return runner


@pytest.fixture
def worked_out(monkeypatch):
    """The sizes whose padding was worked out."""
    sizes = []
    padded = Fitting.padded

    def watched(self, call, own, edges):
        sizes.append(own)
        return padded(self, call, own, edges)

    monkeypatch.setattr(Fitting, "padded", watched)
    return sizes


def build(model, edges, **settings):
    plan = BucketPlan(axes=[AxisPlan(name="x.1", edges=edges)])
    return ShapeBuckets(model, {"x": [1]}, plan=plan, backend="eager", **settings)


def test_a_call_like_one_before_is_looked_up(models, worked_out):
    runner = settled(build(models.Pointwise(), [8, 16]), {"x": torch.randn(2, 5, 4)})
    worked_out.clear()
    for _ in range(3):
        x = torch.randn(2, 5, 4)
        torch.testing.assert_close(runner(x=x), runner.model(x))
    assert worked_out == []
    statistics = runner.statistics()
    assert (statistics.calls, statistics.hits, statistics.misses) == (9, 8, 1)
    assert statistics.padding_share == pytest.approx(1 - 5 / 8)
    runner(torch.randn(2, 5, 4))  # given by position it is another call
    runner(x=torch.randn(2, 5, 4, dtype=torch.float32)[:, :4])
    assert [own for own in worked_out if own != (5,)] == [(4,)]


@pytest.mark.parametrize("given", [True, False])
def test_masks_are_made_for_calls_that_are_looked_up(models, worked_out, given):
    model = models.Attention().eval()
    call = {"x": torch.randn(2, 5, 8)} | ({"mask": torch.ones(2, 5, dtype=torch.bool)} if given else {})
    runner = settled(build(model, [8]), call)
    worked_out.clear()
    x = torch.randn(2, 5, 8)
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    kwargs = {"mask": mask} if given else {}
    torch.testing.assert_close(runner(x=x, **kwargs), model(x, **kwargs), rtol=1e-4, atol=1e-5)
    assert worked_out == []


def test_other_modes_are_other_calls(models, worked_out):
    runner = build(models.Pointwise(), [8])
    x = torch.randn(2, 5, 4)
    settled(runner, {"x": x})
    worked_out.clear()
    with torch.no_grad():
        assert not runner(x=x).requires_grad
    assert worked_out != []
    assert runner(x=x).requires_grad


def test_checks_that_are_due_are_made(models):
    runner = settled(build(models.Pointwise(), [8], check_every=10), {"x": torch.randn(2, 5, 4)})
    for _ in range(24):
        runner(x=torch.randn(2, 5, 4))
    assert runner.statistics().checks == 1 + 3


def test_buckets_that_are_gone_are_not_found_by_old_routes(models):
    x, y = torch.randn(2, 5, 4), torch.randn(2, 12, 4)
    runner = settled(build(models.Pointwise(), [8, 16], max_graphs=1), {"x": x}, {"x": y})
    assert runner.statistics().evictions == 1
    torch.testing.assert_close(runner(x=x), runner.model(x))
    assert runner.statistics().misses == 3
    runner.replan()
    torch.testing.assert_close(runner(x=x), runner.model(x))
    assert runner.statistics().misses == 4


def test_inputs_of_another_layout_are_padded_alike(models):
    runner = build(lambda x: x * 2, [8])
    x = torch.randn(2, 4, 5).transpose(1, 2)
    settled(runner, {"x": x})
    torch.testing.assert_close(runner(x=x), x * 2)
    assert runner(x=x).is_contiguous()


def test_calls_of_several_threads_are_all_counted(models):
    x = torch.randn(2, 5, 4)
    with torch.no_grad():
        runner = settled(build(models.Pointwise(), [8]), {"x": x})

    def work():
        with torch.no_grad():
            for _ in range(50):
                runner(x=x)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    statistics = runner.statistics()
    assert statistics.calls == statistics.hits + statistics.misses == 206
    assert sum(bucket.calls for bucket in statistics.buckets) == 206


def test_a_refusal_ends_all_routes(models):
    total = torch.zeros(())

    def forward(x):
        return x + total * x.cumsum(1).flip(1)

    runner = settled(
        build(forward, [8], check_every=8, on_refusal="dynamic", hostile_values=False),
        {"x": torch.ones(2, 5, 4)},
    )
    total.fill_(1)
    for _ in range(4):
        runner(x=torch.ones(2, 5, 4))
    statistics = runner.statistics()
    assert len(statistics.refusals) == 1
    assert statistics.fallback_calls == 3
    torch.testing.assert_close(runner(x=torch.ones(2, 5, 4)), forward(torch.ones(2, 5, 4)))
    with pytest.raises(PaddingError):
        build(forward, [8])(torch.ones(2, 5, 4))
