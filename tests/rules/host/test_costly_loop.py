"""PYR133: loops that no other rule explains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import torch

from pyrometer.rules.case import Case
from pyrometer.rules.explain import diagnose_case
from pyrometer.rules.finding import Finding
from pyrometer.trace.records.rank import RankReport
from pyrometer.trace.reporting.rank_report import report_rank

CODE = "PYR133"
Sampled = Callable[..., Case]

METER = """
import torch


class Meter:
    def update(self, predicted, truth):
        for t in range(self.classes):
            for p in range(self.classes):
                self.matrix[t, p] += ((truth == t) & (predicted == p)).sum()
"""
THREE = ("aten::eq", "aten::sum", "aten::bitwise_and")
PASSES = {"operator comparison": 0.5, "operator ().sum": 0.15}


@pytest.fixture
def trace_of(builder: Any) -> Callable[..., RankReport]:
    """The trace of a function whose rounds call these operators in turn, each for a hundred times what dispatch costs."""

    def trace(*ops: str, frame: str = "train.py(6): update") -> RankReport:
        builder.annotate("ProfilerStep#0", 0.0, 60_000)
        builder.python(frame, 1, 59_000)
        for i in range(200):
            builder.op("aten::detach", 10 + i * 290, 1)
            builder.op(ops[i % len(ops)], 20 + i * 290, 270)
        return report_rank(builder.read())

    return trace


def test_rounds_over_whole_tensors_are_told_at_the_loop(
    sampled: Sampled, findings: Callable[..., list[Finding]], trace_of: Callable[..., RankReport]
) -> None:
    loops = {7: (19.0, PASSES), 8: (200.0, PASSES)}
    case = sampled(METER, {9: PASSES}, loops=loops, trace=trace_of("aten::eq"))
    (finding,) = findings(CODE, case)
    assert (finding.where.line, finding.scope) == (8, "general")
    assert "200 rounds" in finding.message
    assert finding.cost is not None
    assert finding.cost.share == pytest.approx(0.65)
    assert "bincount" in finding.advice.title
    gain = finding.advice.gain
    assert gain is not None
    assert (gain.ratio_low or 0) < 0.4 < (gain.ratio_high or 0) < 0.8


PER_PICTURE = """
import torch


class Meter:
    def update(self, pictures):
        return torch.cat([self.sharpen(picture) for picture in pictures])
"""


def test_what_each_round_does_with_its_own_element_stays(
    sampled: Sampled, findings: Callable[..., list[Finding]], trace_of: Callable[..., RankReport]
) -> None:
    spent = {"operator self.sharpen": 0.9}
    case = sampled(PER_PICTURE, {7: spent}, loops={7: (64.0, spent)}, trace=trace_of("aten::pow"))
    (finding,) = findings(CODE, case)
    gain = finding.advice.gain
    assert gain is not None
    shared = sampled(METER, {9: spent}, loops={8: (64.0, spent)}, trace=trace_of("aten::pow"))
    (other,) = findings(CODE, shared)
    assert other.advice.gain is not None
    assert (gain.ratio_high or 0) > (other.advice.gain.ratio_high or 0) + 0.1
    assert (gain.ratio_high or 0) > 0.6


def test_it_is_what_a_check_says_where_no_rule_knows_more(
    sampled: Sampled, trace_of: Callable[..., RankReport]
) -> None:
    case = sampled(METER, {9: PASSES}, loops={8: (20.0, PASSES)}, trace=trace_of(*THREE))
    loud = [finding.code for finding in diagnose_case(case).findings if finding.severity != "info"]
    assert loud[0] == CODE


@pytest.mark.parametrize("op", ["aten::mkldnn_convolution", "aten::addmm"])
def test_a_network_that_is_called_again_and_again_is_left_alone(
    sampled: Sampled,
    findings: Callable[..., list[Finding]],
    trace_of: Callable[..., RankReport],
    op: str,
) -> None:
    loops = {8: (200.0, {"operator self.model": 0.9})}
    case = sampled(METER, {9: {"operator self.model": 0.9}}, loops=loops, trace=trace_of(op))
    assert findings(CODE, case) == []


PER_SAMPLE = """
import torch


def clipped(model, params, records, labels):
    for record, label in zip(records, labels):
        loss = torch.nn.functional.cross_entropy(model(record[None]), label[None])
        yield torch.autograd.grad(loss, params)
"""


def test_a_backward_pass_in_each_round_is_the_loops_own(
    sampled: Sampled, findings: Callable[..., list[Finding]], trace_of: Callable[..., RankReport]
) -> None:
    trace = trace_of(*THREE, frame="train.py(5): clipped")
    spent = {"backward torch.autograd.grad": 0.6, "operator torch.nn.functional.cross_entropy": 0.2}
    (finding,) = findings(CODE, sampled(PER_SAMPLE, {8: spent}, loops={6: (32.0, spent)}, trace=trace))
    assert "vmap" in finding.advice.title
    steps = spent | {"operator optimizer step": 0.1}
    assert findings(CODE, sampled(PER_SAMPLE, {8: steps}, loops={6: (32.0, steps)}, trace=trace)) == []


def test_few_rounds_and_what_other_rules_speak_of_are_left_alone(
    sampled: Sampled, findings: Callable[..., list[Finding]], trace_of: Callable[..., RankReport]
) -> None:
    trace = trace_of("aten::eq")
    assert findings(CODE, sampled(METER, {9: PASSES}, loops={8: (6.0, PASSES)}, trace=trace)) == []
    files = {"fsync os.fsync": 0.8}
    assert findings(CODE, sampled(METER, {9: files}, loops={8: (200.0, files)}, trace=trace)) == []


def test_a_loop_around_another_over_the_same_is_not_beside_it(
    sampled: Sampled, findings: Callable[..., list[Finding]], trace_of: Callable[..., RankReport]
) -> None:
    trace = trace_of("aten::eq")
    within = {7: (19.0, PASSES), 8: (200.0, PASSES)}
    ranges = [
        findings(CODE, sampled(METER, {9: PASSES}, loops=loops, trace=trace))[0].advice.gain
        for loops in (within, {8: within[8]})
    ]
    assert ranges[0] == ranges[1]


def test_where_samples_are_few_the_trace_counts_with_what_the_function_calls(
    sampled: Sampled, findings: Callable[..., list[Finding]], builder: Any
) -> None:
    builder.annotate("ProfilerStep#0", 0.0, 60_000)
    builder.python("train.py(6): update", 1, 59_000)
    for i in range(30):
        builder.python("train.py(20): passes", 10 + i * 1_900, 1_800)
        for j, op in enumerate(THREE):
            builder.op(op, 20 + i * 1_900 + j * 590, 580)
    few = {"operator comparison": 0.2}
    case = sampled(METER, {9: few}, loops={8: (30.0, few)}, trace=report_rank(builder.read()))
    assert case.host is not None
    rough = msgspec.structs.replace(case.host, samples=8)
    assert findings(CODE, msgspec.structs.replace(case, host=rough))
    assert not findings(CODE, msgspec.structs.replace(case, host=rough, trace=None))


def test_the_advice_gives_the_same_counts(run: Callable[..., dict[str, Any]]) -> None:
    truth, guess = torch.randint(0, 5, (2, 7, 11))
    tables = [
        run(CODE, part, torch=torch)["count_pairs"](truth, guess, 5) for part in ("Example", "Use instead")
    ]
    assert torch.equal(*tables)
    assert int(tables[0].sum()) == truth.numel()
