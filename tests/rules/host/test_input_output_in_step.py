"""PYR120: input and output in the step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding

CODE = "PYR120"
Sampled = Callable[..., Case]


STEP = """
def step(model, x, log):
    y = model(x)
    log.write(f"{y.mean()}\\n")
    log.flush()
    os.fsync(log.fileno())
    return y
"""


def test_a_step_that_waits_for_the_disk_is_told_the_line(
    sampled: Sampled, only: Callable[..., Finding]
) -> None:
    finding = only(
        CODE,
        sampled(STEP, {3: {"operator linear": 0.2}, 5: {"file file.flush": 0.1}, 6: {"fsync os.fsync": 0.6}}),
    )
    assert (finding.where.line, finding.where.function) == (6, "step")
    assert finding.cost is not None
    assert finding.cost.share == pytest.approx(0.7)
    assert finding.evidence["lines"] == ["train.py:6", "train.py:5"]
    assert "os.fsync" in finding.message
    assert "fsync" in finding.advice.title


@pytest.mark.parametrize("kind", ["logging", "print", "file", "process", "network"])
def test_each_kind_has_advice_of_its_own(sampled: Sampled, only: Callable[..., Finding], kind: str) -> None:
    finding = only(CODE, sampled(STEP, {4: {kind: 0.5}}))
    assert finding.advice.gain is not None
    assert 0.4 < (finding.advice.gain.ratio_low or 0) < 0.5 < (finding.advice.gain.ratio_high or 0) < 0.65


def test_a_loop_around_it_is_told_with_its_rounds(sampled: Sampled, only: Callable[..., Finding]) -> None:
    text = "def step(rows, log):\n    for row in rows:\n        log.write(row)\n"
    finding = only(
        CODE, sampled(text, {3: {"file file.write": 0.5}}, loops={2: (640, {"file file.write": 0.5})})
    )
    assert "the loop over `rows` (line 2, 640 rounds per step)" in finding.message


def test_little_of_it_is_left_alone(sampled: Sampled, findings: Callable[..., list[Finding]]) -> None:
    assert findings(CODE, sampled(STEP, {3: {"operator linear": 0.9}, 6: {"fsync os.fsync": 0.1}})) == []


def test_collecting_writes_the_same_lines_with_few_calls(run: Callable[..., dict[str, Any]]) -> None:
    class Log(list[str]):
        calls = 0

        def write(self, line: str) -> None:
            self.append(line)
            self.calls += 1

        def writelines(self, lines: list[str]) -> None:
            self.extend(lines)
            self.calls += 1

        def flush(self) -> None:
            self.calls += 1

        def fileno(self) -> int:
            return 0

    class Disk:
        fsyncs = 0

        def fsync(self, _number: int) -> None:
            self.fsyncs += 1

    before, after, disk = Log(), Log(), Disk()
    loader = [(number, number + 1) for number in range(250)]
    given = {"loader": loader, "os": disk, "train_step": lambda inputs, targets: inputs * targets}
    run(CODE, "Example", log=before, **given)
    fsyncs = disk.fsyncs
    run(CODE, "Use instead", log=after, **given)
    assert list(after) == list(before)
    assert (fsyncs, disk.fsyncs - fsyncs) == (250, 0)
    assert after.calls * 50 < before.calls
