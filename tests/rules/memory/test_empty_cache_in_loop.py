"""PYR205: giving the allocator's cache back in every step."""

from __future__ import annotations

import pytest

from pyrometer.rules.case import Case
from pyrometer.source.module import Module
from pyrometer.trace.reporting.rank_report import report_rank

CODE = "PYR205"

LOOP = """\
import torch
from torch import nn

def train(loader, epochs):
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        for step, x in enumerate(loader):
            model(x).sum().backward()
            optimizer.step()
            {line}
        {after}
"""


def loop(line: str, after: str = "pass") -> str:
    return LOOP.format(line=line, after=after)


@pytest.mark.parametrize(
    "line",
    [
        "torch.cuda.empty_cache()  # <-",
        "torch.mps.empty_cache()  # <-",
        "torch.accelerator.empty_cache()  # <-",
        "from torch.cuda import empty_cache; empty_cache()  # <-",
    ],
)
def test_it_finds_calls_in_every_step(fires, line):
    fires(CODE, loop(line))


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("pass", "torch.cuda.empty_cache()"),
        ("if step % 1000 == 0:\n                torch.cuda.empty_cache()", "pass"),
        (
            "try:\n                pass\n            except torch.OutOfMemoryError:\n                torch.cuda.empty_cache()",
            "pass",
        ),
        ("cache.empty_cache()", "pass"),
        ("if args.frugal:\n                torch.cuda.empty_cache()", "pass"),  # somebody asked for it
    ],
)
def test_it_is_silent_between_phases_after_errors_and_about_other_caches(silent, line, after):
    silent(CODE, loop(line, after))


def test_the_fix_deletes_the_call_and_is_not_made_without_asking(matches, fixed):
    text = loop("torch.cuda.empty_cache()")
    found = matches(CODE, text)
    assert [match.fix.fix_class for match in found] == ["semantic"]
    changed = fixed(text, found)
    assert "empty_cache" not in changed
    compile(changed, "train.py", "exec")


def traced(builder, took_us: float):
    """Two steps of 1 ms, each with a call of empty_cache."""
    for step in range(2):
        begin = 1000.0 * step
        builder.annotate(f"ProfilerStep#{step}", begin, 1000.0)
        builder.python("train.py(4): train", begin, 990.0)
        builder.op("aten::mm", begin, 400.0)
        builder.op("aten::mm", begin + 900, 90.0)
        builder.python("torch/cuda/memory.py(200): empty_cache", begin + 500.0, took_us)
    return report_rank(builder.read())


def test_the_time_of_the_calls_in_a_trace_is_told_at_their_line(builder, findings):
    module = Module.parse("train.py", loop("torch.cuda.empty_cache()"))
    found = findings(CODE, Case(target="t", trace=traced(builder, 300.0), modules=(module,)))
    assert [(finding.where.file, finding.where.line) for finding in found] == [("train.py", 11)]
    assert found[0].cost.share == pytest.approx(0.3, abs=0.02)
    assert found[0].advice.gain.ratio_low == pytest.approx(0.7, abs=0.02)
    assert found[0].evidence["calls_per_step"] == 1


def test_calls_that_take_no_time_are_not_told_by_a_trace(builder, findings):
    assert findings(CODE, Case(target="t", trace=traced(builder, 2.0))) == []


def test_one_call_in_a_file_is_not_known_to_be_in_a_loop(builder, findings):
    builder.annotate("ProfilerStep#0", 0, 1000)
    builder.python("capture.py(4): capture", 1, 990)
    builder.python("torch/cuda/memory.py(160): empty_cache", 100, 300)
    builder.op("aten::mm", 500, 100)
    assert findings(CODE, Case(target="t", trace=report_rank(builder.read()))) == []
