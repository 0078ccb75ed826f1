"""Cold starts in fresh processes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.bench import cold as module
from pyrometer.bench.cold import measure_cold, summarise_stage
from pyrometer.bench.record import STAGES, ColdStart
from pyrometer.errors import InputError, UserProgramError
from pyrometer.workload.target import parse_target

TARGET = """
import time
import torch
from torch import nn
import pyrometer as pm

time.sleep(0.2)  # a slow import

class Lazy(nn.Module):
    ready = False
    def forward(self, x):
        if not self.ready:
            time.sleep(0.3)
            type(self).ready = True
        return x + 1

def work():
    print("chatter")
    return pm.Inference(Lazy(), torch.zeros(4))

def broken():
    raise RuntimeError("no such split")
"""


@pytest.fixture
def target(tmp_path):
    (tmp_path / "cold_target.py").write_text(TARGET)
    return lambda name: parse_target(f"cold_target.py:{name}", cwd=tmp_path)


@pytest.mark.slow
def test_each_stage_is_timed_in_its_own_process(target):
    shares = []
    starts = measure_cold(target("work"), 2, lambda share, _what: shares.append(share))
    assert shares == [0.0, 0.5]
    assert len(starts.later) == 1
    for start in (starts.first, *starts.later):
        # The sleeps happen anew in every process, and only in their stage.
        assert start.load_s > 0.2
        assert start.first_call_s > 0.3
        assert start.import_s > 0.1
        assert start.steady_s < start.first_call_s / 3
        assert start.total_s == pytest.approx(
            start.python_s + start.import_s + start.load_s + start.first_call_s
        )
    assert [stage.name for stage in starts.stages] == list(STAGES)


@pytest.mark.slow
def test_what_the_target_raises_comes_back(target):
    with pytest.raises(UserProgramError, match="no such split"):
        measure_cold(target("broken"), 1)


def test_no_start_at_all_is_refused(target):
    with pytest.raises(InputError, match="cold: got 0 processes"):
        measure_cold(target("work"), 0)


def start(total_s: float) -> ColdStart:
    return ColdStart(
        python_s=0.1, import_s=1.0, load_s=0.1, first_call_s=total_s - 1.2, total_s=total_s, steady_s=0.01
    )


@pytest.fixture
def starts(monkeypatch):
    """Starts that are already known, in place of fresh processes; an exception among them is raised."""

    def use(*answers):
        rest = iter(answers)

        def answer(_function, _request):
            given = next(rest)
            if isinstance(given, BaseException):
                raise given
            return given

        monkeypatch.setattr(module, "run_fresh", answer)

    return use


def test_the_first_process_is_kept_apart(starts, target):
    starts(*[start(s) for s in (9.0, 2.0, 3.0, 4.0)])
    cold_starts = measure_cold(target("work"), 4)
    assert cold_starts.first.total_s == 9.0
    total = next(stage for stage in cold_starts.stages if stage.name == "total_s")
    assert (total.median_s, total.min_s, total.max_s) == (3.0, 2.0, 4.0)


def test_one_start_has_no_summary(starts, target):
    starts(start(9.0))
    cold_starts = measure_cold(target("work"), 1)
    assert cold_starts.stages == []


def test_ctrl_c_keeps_the_starts_before(starts, target):
    starts(start(9.0), start(2.0), KeyboardInterrupt())
    cold_starts = measure_cold(target("work"), 5)
    assert cold_starts.interrupted
    assert len(cold_starts.later) == 1


def test_ctrl_c_in_the_first_start_has_nothing_to_keep(starts, target):
    starts(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        measure_cold(target("work"), 5)


@given(st.lists(st.floats(0.001, 100), min_size=1, max_size=40))
def test_the_interval_has_its_coverage_and_exists_from_six_on(times_s):
    stage = summarise_stage("load_s", times_s)
    n, ordered = len(times_s), sorted(times_s)
    assert (stage.ci_low_s is None) == (n < 6)
    if stage.ci_low_s is not None:
        rank = min(i for i, time_s in enumerate(ordered, 1) if time_s == stage.ci_low_s)
        missed = 2 * sum(math.comb(n, k) for k in range(rank)) / 2**n
        assert missed <= 0.05
        assert stage.min_s <= stage.ci_low_s <= stage.median_s <= stage.ci_high_s <= stage.max_s
