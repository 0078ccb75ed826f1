"""Fresh processes as the unit: decisions on simulated processes, and one real replication."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pyrometer.bench.comparison import replicate as module
from pyrometer.bench.comparison.decision import DecisionRule
from pyrometer.bench.comparison.replicate import (
    LOOKS,
    ProcessBlocks,
    decide_processes,
    processes_needed,
    replicate,
)
from pyrometer.bench.comparison.verdict import sentence
from pyrometer.errors import InputError, TargetError, UserProgramError
from pyrometer.workload.target import parse_target

RULE = DecisionRule(looks=LOOKS)
LAYOUT_SD = 0.017
"""How far identical processes differ, in ln ratio; measured on a shared two-core machine."""


def staged(estimates: np.ndarray, rule: DecisionRule = RULE):
    for look in rule.looks:
        decision = decide_processes(estimates[:look], rule)
        if decision.outcome:
            return decision, look
    return decision, look


def simulate(effect: float, trials: int, *, sd: float = LAYOUT_SD, seed: int = 0, heavy: bool = False):
    rng = np.random.default_rng(seed)
    noise = (
        rng.standard_t(4, (trials, LOOKS[-1])) / math.sqrt(2)
        if heavy
        else rng.normal(size=(trials, LOOKS[-1]))
    )
    return [staged(effect + sd * row) for row in noise]


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("sd", [0.005, LAYOUT_SD, 0.04])
def test_layout_alone_is_hardly_ever_called_a_difference(sd, heavy):
    outcomes = [decision.outcome for decision, _ in simulate(0.0, 1000, sd=sd, heavy=heavy)]
    # One per cent nominal, over all looks; 19 of 1,000 is three standard errors above.
    assert outcomes.count("slower") + outcomes.count("faster") <= 19


def test_blocks_of_one_process_would_be_fooled_by_the_same_layout():
    """The contrast that this procedure exists for: narrow within a process, wrong beyond it."""
    rng = np.random.default_rng(3)
    wrong = 0
    for _ in range(200):
        layout = rng.normal(0, 0.03)
        blocks = layout + rng.normal(0, 0.01, 40)
        half = 2.7 * blocks.std(ddof=1) / math.sqrt(40)
        wrong += abs(blocks.mean()) > half and abs(blocks.mean()) > math.log(1.02)
    assert wrong / 200 > 0.3


@pytest.mark.parametrize(("effect", "sd", "power"), [(0.05, LAYOUT_SD, 0.97), (0.10, 0.03, 0.97)])
def test_real_differences_are_found(effect, sd, power):
    outcomes = [decision.outcome for decision, _ in simulate(effect, 300, sd=sd)]
    assert outcomes.count("slower") / 300 >= power
    assert "faster" not in outcomes


def test_a_difference_beyond_the_margin_is_hardly_ever_called_the_same():
    outcomes = [decision.outcome for decision, _ in simulate(math.log(1.07), 1000)]
    assert outcomes.count("same") <= 5


@pytest.mark.parametrize("effect", [0.0, 0.03, 0.10])
def test_the_interval_covers_the_true_ratio(effect):
    hits = [decision.low <= effect <= decision.high for decision, _ in simulate(effect, 600, seed=1)]
    assert sum(hits) / 600 >= 0.98


def test_clear_cases_end_early():
    assert np.median([look for _, look in simulate(0.3, 50)]) == LOOKS[0]


def test_one_process_has_no_interval():
    decision = decide_processes(np.array([0.2]), RULE)
    assert decision.outcome is None
    assert (decision.low, decision.high) == (-math.inf, math.inf)


def test_as_many_processes_as_are_said_to_be_needed_mostly_decide():
    rng = np.random.default_rng(5)
    decided = 0
    for _ in range(100):
        first = rng.normal(0.0, 0.05, 12)
        needed = processes_needed(first, RULE)
        assert needed > 12
        rule = DecisionRule(looks=(needed,))
        decided += (
            decide_processes(np.concatenate([first, rng.normal(0.0, 0.05, needed - 12)]), rule).outcome
            is not None
        )
    assert decided >= 70


TARGETS = """
import torch
from torch import nn
import pyrometer as pm

def net(depth):
    torch.manual_seed(0)
    return nn.Sequential(*[nn.Linear(48, 48) for _ in range(depth)])

def shallow():
    torch.set_num_threads(1)
    return pm.Inference(net(4), torch.randn(4, 48))

def deep():
    torch.set_num_threads(1)
    return pm.Inference(net(8), torch.randn(4, 48))

def broken():
    raise RuntimeError("no such split")
"""


@pytest.fixture
def targets(tmp_path):
    (tmp_path / "targets.py").write_text(TARGETS)
    return lambda name: parse_target(f"targets.py:{name}", cwd=tmp_path)


@pytest.mark.slow
def test_twice_the_depth_is_slower_in_every_process(targets):
    told = []
    v = replicate(
        targets("shallow"), targets("deep"), processes=5, seed=3, progress=lambda *what: told.append(what)
    )
    assert v.outcome == "slower"
    assert 1.4 < v.ratio < 2.6
    assert (v.num_processes, len(v.log_ratios)) == (5, 5)
    assert v.num_blocks >= 5 * 40
    assert v.metric == "wall_min"
    assert [what for _, what in told] == [f"process {i}" for i in range(1, 6)]
    assert (v.baseline, v.candidate) == ("A: Sequential", "B: Sequential")


@pytest.mark.slow
@pytest.mark.exhaustive  # on known processes, below
def test_the_budget_holds_and_the_verdict_says_what_is_missing(targets):
    v = replicate(targets("shallow"), targets("deep"), processes=5, budget_s=0.5)
    assert v.outcome == "undecided"
    assert v.num_processes == 1
    assert v.ci_low is None
    assert "the budget was enough for 1 process only; --budget" in sentence(v)


@pytest.mark.slow
@pytest.mark.exhaustive  # as whatever a fresh process raises
def test_a_factory_that_fails_is_the_users_error(targets):
    with pytest.raises(UserProgramError, match="RuntimeError: no such split"):
        replicate(targets("broken"), targets("broken"), processes=3)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_factory_that_is_missing_is_a_target_error(targets):
    with pytest.raises(TargetError, match="nowhere"):
        replicate(targets("shallow"), targets("nowhere"), processes=3)


@pytest.mark.parametrize("bad", [{"processes": 2}, {"budget_s": 0}, {"margin": 0.0}, {"confidence": 1.5}])
def test_bad_arguments_are_refused_before_anything_runs(targets, bad):
    with pytest.raises(InputError):
        replicate(targets("shallow"), targets("deep"), **bad)


def blocks(estimate: float, num: int = 40) -> ProcessBlocks:
    return ProcessBlocks(
        baseline="A",
        candidate="B",
        metric="wall_min",
        calls=5,
        log_ratios=[estimate] * num,
        baseline_s=1e-3,
        candidate_s=1e-3,
        slot_effect=0.0,
        blocks_s=1.0,
        warm=True,
    )


@pytest.fixture
def processes(monkeypatch):
    """Processes that are already known, in place of fresh ones; an exception among them is raised."""

    def use(*answers):
        rest = iter(answers)

        def answer(_function, request):
            given = next(rest)
            if isinstance(given, BaseException):
                raise given
            requests.append(request)
            return given

        requests = []
        monkeypatch.setattr(module, "run_fresh", answer)
        return requests

    return use


def test_the_first_process_chooses_the_metric_for_all(processes, targets):
    requests = processes(*[blocks(x) for x in (0.3, 0.31, 0.29, 0.3, 0.3)])
    replicate(targets("shallow"), targets("deep"), processes=12)
    assert [request.metric for request in requests] == [None] + ["wall_min"] * 4
    assert requests[1].calls == 5
    assert len({request.seed for request in requests}) == 5


def test_ctrl_c_keeps_the_processes_that_ended(processes, targets):
    processes(blocks(0.1), blocks(0.12), KeyboardInterrupt())
    v = replicate(targets("shallow"), targets("deep"), processes=5)
    assert v.num_processes == 2
    assert "interrupted after 2 processes" in sentence(v)


def test_ctrl_c_in_the_first_process_has_nothing_to_keep(processes, targets):
    processes(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        replicate(targets("shallow"), targets("deep"), processes=5)


def test_processes_that_disagree_say_how_many_would_do(processes, targets):
    rng = np.random.default_rng(0)
    processes(*[blocks(x) for x in rng.normal(0, 0.1, 5)])
    v = replicate(targets("shallow"), targets("deep"), processes=5)
    assert "5 processes disagree too much; about --processes" in sentence(v)


def test_a_process_that_the_budget_cut_short_does_not_count(processes, targets):
    processes(blocks(0.1), blocks(0.9, num=3))
    v = replicate(targets("shallow"), targets("deep"), processes=5)
    assert v.num_processes == 1


def test_both_orders_of_loading_occur(processes, targets):
    rng = np.random.default_rng(0)
    requests = processes(*[blocks(x) for x in rng.normal(0, 0.2, 12)])
    replicate(targets("shallow"), targets("deep"), processes=12)
    assert {request.candidate_first for request in requests} == {True, False}
