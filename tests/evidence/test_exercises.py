"""Exercises from program to advice applied: a video encoder, a broken perception model, a leaking controller."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from pyrometer.bench.comparison.compare import compare
from pyrometer.evidence.observe import observe
from pyrometer.evidence.options import ObserveOptions
from pyrometer.report.documents import CheckDocument
from pyrometer.rules.case import Case
from pyrometer.rules.explain import explain, findings_of
from pyrometer.rules.finding import Finding
from pyrometer.rules.registry import find_rule
from pyrometer.source.program import program_modules
from pyrometer.workload.loading import load_workload
from pyrometer.workload.target import parse_target
from pyrometer.workload.workload import Workload

EXAMPLES = Path(__file__).parents[2] / "examples"
BUDGET_S = 3.0
Check = Callable[[str], CheckDocument]

pytestmark = [pytest.mark.slow, pytest.mark.measuring]


def load(target: str) -> Workload:
    return load_workload(parse_target(str(EXAMPLES / target)))


def line_of(file: str, text: str) -> int:
    """The only line of an example that holds a text."""
    lines = (EXAMPLES / file).read_text(encoding="utf-8").splitlines()
    numbers = [number for number, line in enumerate(lines, 1) if text in line]
    assert len(numbers) == 1, (text, numbers)
    return numbers[0]


def by_code(document: CheckDocument, code: str) -> list[Finding]:
    return [finding for finding in document.diagnosis.findings if finding.code == code]


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Check]:
    """An example as a user would check it, each once; the machine's peaks are measured on the way."""
    seen: dict[str, CheckDocument] = {}
    peaks = tmp_path_factory.mktemp("peaks")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # so that steps are alike on a busy machine

    def look(target: str) -> CheckDocument:
        if target not in seen:
            file = EXAMPLES / target.partition(":")[0]
            options = ObserveOptions(budget_s=BUDGET_S, peaks_folder=peaks)
            evidence = observe(load(target), target, options).evidence
            seen[target] = CheckDocument(evidence=evidence, diagnosis=explain(evidence, (file,)))
        return seen[target]

    yield look
    torch.set_num_threads(threads)


def test_the_reading_of_a_video_encoder_leads_from_the_operator_to_its_shape_and_line(check: Check) -> None:
    document = check("video_encoder.py:workload")
    _, host, size, calls, shapes, line = document.diagnosis.reading
    assert "operators on the CPU" in host.answer
    assert size.evidence["op"] == "aten::slow_conv3d_forward"
    assert size.verdict == "look"
    assert calls.answer.startswith("aten::slow_conv3d_forward 2.00 ×")
    assert shapes.verdict == "look"
    awkward = shapes.answer.partition("; ")[0].replace(" ", "")
    assert awkward.startswith("aten::slow_conv3d_forwardon1×16×8×64×64,16×16×1×3×3")
    here = line_of(
        "video_encoder.py", "def forward(self, clips_BCTHW: Tensor) -> Tensor:  # all frames at once"
    )
    assert f"forward (video_encoder.py:{here})" in line.answer


def test_the_video_encoders_largest_operator_is_a_finding_with_its_line(check: Check) -> None:
    findings = by_code(check("video_encoder.py:workload"), "PYR516")
    assert [finding.where.op for finding in findings] == ["aten::slow_conv3d_forward"]
    assert findings[0].cost is not None
    assert Path(findings[0].where.file or "").name == "video_encoder.py"
    assert "2 calls per step" in findings[0].message


def test_the_video_encoder_in_two_dimensions_gives_the_same_and_is_faster(check: Check) -> None:
    broken, fixed = load("video_encoder.py:workload"), load("video_encoder.py:fixed")
    verdict = compare(broken, fixed, budget_s=BUDGET_S)
    assert verdict.ratio < 0.9
    with torch.inference_mode():
        clips = torch.randn(1, 3, 8, 64, 64)
        torch.testing.assert_close(fixed.model(clips), broken.model(clips), atol=1e-5, rtol=1e-4)  # type: ignore[attr-defined]
    mended = check("video_encoder.py:fixed")
    assert "slow_conv3d" not in " ".join(step.answer for step in mended.diagnosis.reading)


def test_the_leak_of_a_controller_is_an_error_with_its_line_and_its_holder(check: Check) -> None:
    document = check("robot_controller.py:workload")
    leak = document.diagnosis.findings[0]
    assert (leak.code, leak.severity) == ("PYR217", "error")
    assert "RobotController.history_buffer" in leak.message
    assert Path(leak.where.file or "").name == "robot_controller.py"
    assert leak.where.line == line_of("robot_controller.py", "plan: Tensor = self.planner(perception)")
    assert leak.cost is not None
    assert leak.cost.bytes


def test_the_controller_that_forgets_is_clean(check: Check) -> None:
    serious = [
        finding
        for finding in check("robot_controller.py:fixed").diagnosis.findings
        if finding.severity != "info" and not finding.code.startswith("PYR0")
    ]
    assert serious == [], [finding.message for finding in serious]


class Mend(NamedTuple):
    """A fault of the broken perception model, and how its user mends it."""

    code: str
    at: str
    """Begins the line that the finding names."""
    old: str
    new: str


MENDS = {
    "dropout": Mend(
        "PYR509",
        "image = F.dropout(",
        "F.dropout(image, 0.1)",
        "F.dropout(image, 0.1, training=self.training)",
    ),
    "graph break": Mend("PYR401", "print(", '    print(end="")  # a forgotten line of debugging\n', ""),
    "item": Mend(
        "PYR101",
        "if score.item() > 0.5:",
        """    count = 0
    for score in scores:
        if score.item() > 0.5:
            count += 1
    return torch.tensor(count / len(scores))
""",
        "    return (scores > 0.5).float().mean()\n",
    ),
    "mask": Mend(
        "PYR106",
        "own = scores[labels == label]",
        """    means = []
    for label in range(len(CLASSES)):
        own = scores[labels == label]
        means.append(own.sum() / max(len(own), 1))
    return torch.stack(means)
""",
        """    own = labels[:, None] == torch.arange(len(CLASSES), device=labels.device)
    return (scores[:, None] * own).sum(0) / own.sum(0).clamp(min=1)
""",
    ),
}


@pytest.fixture
def mended(tmp_path: Path) -> Callable[..., Path]:
    """`mended("item")`: a copy of the broken program in which these faults are mended, as a user would."""

    def write(*which: str) -> Path:
        folder = tmp_path / "-".join(["mended", *which]).replace(" ", "_")
        folder.mkdir(exist_ok=True)
        shutil.copy(EXAMPLES / "perception.py", folder)
        text = (EXAMPLES / "broken_perception.py").read_text(encoding="utf-8")
        for name in which:
            assert text.count(MENDS[name].old) == 1
            text = text.replace(MENDS[name].old, MENDS[name].new)
        (folder / "broken_perception.py").write_text(text, encoding="utf-8")
        return folder / "broken_perception.py"

    return write


def faults_of(document: CheckDocument, file: Path) -> dict[str, set[int | None]]:
    """The exercise's codes that were found in its own file, with their lines.

    A mask costs nothing where no device waits for it: on a CPU only the source is asked about it.
    """
    source = Case(target=str(file), modules=tuple(program_modules([file])[0]))
    masks = findings_of(source, [find_rule(MENDS["mask"].code)])
    lines: dict[str, set[int | None]] = {}
    for finding in [*document.diagnosis.findings, *masks]:
        here = Path(finding.where.file or "").name == "broken_perception.py"
        if here and finding.code in {mend.code for mend in MENDS.values()}:
            lines.setdefault(finding.code, set()).add(finding.where.line)
    return lines


def model_in(file: Path) -> Any:
    """The model that a file's workload runs."""
    return load_workload(parse_target(f"{file}:workload")).model  # type: ignore[attr-defined]


def test_each_fault_of_the_broken_perception_model_is_found_at_its_line(check: Check) -> None:
    faults = faults_of(check("broken_perception.py:workload"), EXAMPLES / "broken_perception.py")
    assert set(faults) == {mend.code for mend in MENDS.values()}
    for mend in MENDS.values():
        assert starting("broken_perception.py", mend.at) in faults[mend.code], mend.code


def starting(file: str, text: str) -> int:
    """The only line of an example that begins with a text."""
    lines = (EXAMPLES / file).read_text(encoding="utf-8").splitlines()
    numbers = [number for number, line in enumerate(lines, 1) if line.strip().startswith(text)]
    assert len(numbers) == 1, (text, numbers)
    return numbers[0]


@pytest.mark.parametrize("which", MENDS)
def test_mending_one_fault_takes_its_finding_and_leaves_the_others(
    which: str, mended: Callable[..., Path], check: Check
) -> None:
    file = mended(which)
    work = load_workload(parse_target(f"{file}:workload"))
    evidence = observe(work, str(file), ObserveOptions(budget_s=BUDGET_S)).evidence
    document = CheckDocument(evidence=evidence, diagnosis=explain(evidence, (file,)))
    left = set(faults_of(document, file))
    assert left == {mend.code for mend in MENDS.values()} - {MENDS[which].code}


def test_the_mended_perception_model_gives_what_the_broken_one_does_without_its_dropout(
    mended: Callable[..., Path],
) -> None:
    model, all_of_them = model_in(mended("dropout")), model_in(mended(*MENDS))
    drive = load("perception.py:fixed").inputs  # type: ignore[attr-defined]
    with torch.inference_mode():
        for _ in range(2):
            image, points = drive()
            torch.testing.assert_close(all_of_them(image, points), model(image, points), atol=1e-5, rtol=1e-4)
            assert torch.equal(all_of_them(image, points), all_of_them(image, points))
