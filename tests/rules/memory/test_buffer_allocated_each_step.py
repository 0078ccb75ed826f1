"""PYR215: results that grow by copies, and constants that are made anew."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.rules.case import Case
from pyrometer.rules.explain import findings_of
from pyrometer.rules.ranking import ranked
from pyrometer.rules.registry import select
from recorded import case_of_program

CODE = "PYR215"
replace = msgspec.structs.replace

NET = """\
import torch
from torch import nn

SIZE = 1024

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, n: int) -> torch.Tensor:
        out = None
        kept = torch.empty(0, 8)
        for frame in x:
            state = self.cell(frame)
            {line}
        return kept
"""


def net(line: str) -> str:
    return NET.format(line=line)


@pytest.mark.parametrize(
    "line",
    [
        "kept = torch.row_stack((kept, state))  # <-",
        "out = state[None] if out is None else torch.cat([out, state[None]])  # <-",
        "mask = torch.zeros(1024, 1024)  # <-\n            state = state + mask.sum()",
        "state = state + torch.arange(SIZE * SIZE).sum()  # <-",
        "mask = torch.ones((512, 512), device=x.device)  # <-\n            state = state * mask[0, 0]",
    ],
)
def test_it_finds_growing_results_and_large_constants(fires, line):
    fires(CODE, net(line))


@pytest.mark.parametrize(
    "line",
    [
        "kept = torch.cat([kept, state[None]])  # <-",
        "kept = torch.vstack((kept, state))  # <-",
        "self.kept = torch.cat([self.kept, state[None]])  # <-",
    ],
)
def test_a_plain_growing_cat_is_told_once_by_its_own_rule(fires, silent, line):
    silent(CODE, net(line))
    fires("PYR511", net(line))


@pytest.mark.parametrize(
    "line",
    [
        "kept = torch.cat([kept[1:], state[None]])",  # a window
        "kept = torch.cat([kept, state[None]])\n            state = state + kept.mean()",  # it is read
        "pieces.append(state)\n        kept = torch.cat(pieces)",
        "state = torch.cat([frame, state])",
        "mask = torch.zeros(4, 4)\n            state = state + mask.sum()",
        "mask = torch.zeros(n, 1024, 1024)\n            state = state + mask.sum()",
        "state = state + torch.randn(1024, 1024).sum()",
        "mask = torch.zeros(1024, 1024)\n            masks.append(mask)",
        "mask = torch.zeros(1024, 1024)\n            self.mask = mask",
        "return torch.zeros(1024, 1024)",
    ],
)
def test_it_is_silent_about_windows_small_and_varying_sizes_and_what_is_kept(silent, line):
    silent(CODE, net(line))


def test_code_that_is_compiled_or_runs_once_is_silent(silent):
    line = "mask = torch.zeros(1024, 1024)\n            state = state + mask.sum()"
    silent(CODE, net(line).replace("    def forward", "    @torch.compile\n    def forward"))
    silent(CODE, "import torch\n\nmask = torch.zeros(1024, 1024)\nprint(mask.sum())\n")


@pytest.fixture(scope="module")
def churn():
    """The program that copies itself to death, traced, and rehearsed with the one piece of advice that is about it."""
    case = case_of_program("memory_churn", "workload", "trace", "memory")
    advice = [advice for advice in case.memory.advice if advice.slug == "preallocate"]
    return replace(case, memory=replace(case.memory, advice=advice))


def test_the_example_has_just_this_fault_at_its_line_with_time_and_memory(churn):
    findings = ranked(findings_of(churn, select(["PYR2"])), peak_bytes=churn.memory.peak_bytes)
    assert [finding.code for finding in findings] == [CODE]
    (told,) = findings
    assert "torch.cat([history" in churn.modules[0].lines[told.where.line - 1]
    assert told.confidence == "high"
    assert told.cost.share > 0.2
    assert told.advice.gain.ratio_low < told.advice.gain.ratio_high < 1
    assert told.advice.gain.saves_bytes == churn.memory.advice[0].saves_bytes
    assert told.evidence["turnover"] > 10
    assert told.advice.lever == "preallocate"


def test_its_fixed_variant_allocates_a_small_part_and_is_told_nothing_that_a_record_shows(
    churn,
):
    after = case_of_program("memory_churn", "fixed", "trace")
    findings = findings_of(after, select([CODE]))
    assert [finding.severity for finding in findings if finding.cost is not None] == []
    assert {finding.severity for finding in findings} <= {"info"}
    before, now = (one.trace.memory.devices[0].allocated_bytes_per_step for one in (churn, after))
    assert now < before / 5


def test_without_a_trace_the_peak_tells_it_where_it_is_large(churn, findings):
    memory = Case(
        target="t", memory=churn.memory, modules=churn.modules, limits={f"{CODE}.min_peak_bytes": 0}
    )
    (told,) = (finding for finding in findings(CODE, memory) if finding.cost is not None)
    assert told.advice.gain.saves_bytes == churn.memory.advice[0].saves_bytes
    small = Case(target="t", memory=churn.memory, modules=churn.modules)
    assert [finding for finding in findings(CODE, small) if finding.cost is not None] == []


class Gathering(nn.Module):
    """Joins its pieces once."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([row * 2 for row in x])


def test_a_list_that_is_joined_once_is_no_fault(observe, findings):
    work = pm.Inference(nn.Sequential(Gathering(), nn.Linear(4096, 2)), torch.randn(32, 4096))
    evidence = observe(work, "trace", sources=[Path(__file__)])
    assert findings(CODE, evidence) == []


def test_what_is_advised_gives_the_same_bits(example):
    program = example("bottlenecks/memory_churn.py")
    workload, fixed = program.workload(), program.fixed()
    frames = torch.randn(5, 3, 64)
    with torch.no_grad():
        assert torch.equal(workload.model(frames), fixed.model(frames))
