"""What is counted is the same however fast the machine is."""

from __future__ import annotations

import pytest
import torch

from pyrometer.bench import genuine
from pyrometer.errors import InputError
from pyrometer.guard.counting import count, doubts_of
from pyrometer.workload.call import Call


def of_varied_length():
    """A workload of which every seventh stretch of steps has one operator more."""
    calls = iter(range(10_000))
    x = torch.ones(8)

    def step():
        for _ in range(1 + next(calls) // 7):
            x.clone()

    return Call(step, name="varied")


@pytest.mark.parametrize("burst_s", [0.0, 1.0])
def test_a_step_is_counted_at_the_same_place_whatever_its_duration(monkeypatch, tmp_path, burst_s):
    monkeypatch.setattr(genuine, "BURST_S", burst_s)
    counted = count(of_varied_length(), tmp_path)
    assert (counted.counters["operators"], counted.counters["copies"]) == (1, 1)
    assert counted.notes == []


def test_a_step_that_leaves_its_work_undone_is_refused():
    with pytest.raises(InputError, match="returns a generator"):
        doubts_of(Call(lambda: (torch.ones(1) for _ in range(3)), name="lazy"))


@pytest.mark.parametrize(
    ("backend", "inductor"), [("eager", False), pytest.param("inductor", True, marks=pytest.mark.slow)]
)
def test_a_backend_that_writes_no_code_asks_nothing_of_the_machine(tmp_path, backend, inductor):
    def double(x):
        return 2 * x

    compiled, x = torch.compile(double, backend=backend), torch.ones(8)
    counted = count(Call(lambda: compiled(x), name="double"), tmp_path)
    assert counted.counters["graphs"] == 1
    assert counted.inductor is inductor
