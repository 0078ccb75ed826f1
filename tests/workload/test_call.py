from __future__ import annotations

import pytest
import torch

from pyrometer.errors import InputError
from pyrometer.workload.call import Call


def test_a_call_passes_its_arguments_and_nothing_else():
    calls = []
    work = Call(lambda *args: calls.append(args), 1, 2, unit="operations", per_step=3)
    with work.open() as session:
        session.step(session.prepare())
        session.phased_step(calls.append)
        assert session.units_per_step == 3
    assert calls == [(1, 2), (1, 2), "call"]
    assert (work.unit, work.name, work.phases()) == ("operations", "<lambda>", ("call",))


def test_gradients_are_the_callers_business():
    seen = []
    with Call(lambda: seen.append(torch.is_grad_enabled())).open() as session:
        session.step(session.prepare())
        with torch.no_grad():
            session.step(session.prepare())
    assert seen == [True, False]


def test_threads_and_settings():
    before = torch.get_num_threads()
    work = Call(torch.get_num_threads)
    with work.variant(threads=before + 1).open() as session:
        session.activate()
        assert session.step(session.prepare()) == before + 1
    assert work.config.threads is None
    assert work.snapshot_bytes() == 0


@pytest.mark.parametrize("name", ["dtype", "autocast", "memory_format", "batch_size"])
def test_other_settings_make_no_sense(name):
    with pytest.raises(
        InputError, match=f"{name}: not a setting of a Call workload; legal are mode, threads"
    ):
        Call(sorted, []).variant(**{name: "float32"})


def test_only_callables():
    with pytest.raises(InputError, match="function: got int"):
        Call(3)


@pytest.mark.parametrize("per_step", [float("nan"), float("inf"), -1.0])
def test_an_impossible_number_of_units_is_refused(per_step):
    with pytest.raises(InputError, match=r"per_step: got .*; it must be a finite number"):
        Call(sorted, [1], per_step=per_step)
