"""Exercises from program to advice applied: a video encoder, a broken perception model, a leaking controller."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from mends import MENDS, write_mended
from record_programs import QUICK_S, observed

from pyrometer.rules.case import Case
from pyrometer.rules.diagnosis import Diagnosis
from pyrometer.rules.explain import explain, findings_of
from pyrometer.rules.finding import Finding
from pyrometer.rules.registry import find_rule
from pyrometer.source.program import program_modules
from pyrometer.workload.loading import load_workload
from pyrometer.workload.target import parse_target
from pyrometer.workload.workload import Workload
from recorded import EXAMPLES, FILES, checked, evidence_of, recording


def anew(test: Any) -> Any:
    """Marks what observes a program itself."""
    return pytest.mark.slow(pytest.mark.measuring(test))


def load(target: str) -> Workload:
    return load_workload(parse_target(str(EXAMPLES / target)))


def line_of(file: str, text: str) -> int:
    """The only line of an example that holds a text."""
    lines = (EXAMPLES / file).read_text(encoding="utf-8").splitlines()
    numbers = [number for number, line in enumerate(lines, 1) if text in line]
    assert len(numbers) == 1, (text, numbers)
    return numbers[0]


def diagnosed_anew(program: str) -> Diagnosis:
    """What a check says of a program now."""
    return explain(observed(FILES[program], budget_s=QUICK_S), (FILES[program],))


def test_the_reading_of_a_video_encoder_leads_from_the_operator_to_its_shape_and_line() -> None:
    document = checked("video_encoder")
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


def assert_is_convolution(diagnosis: Diagnosis) -> None:
    findings = [finding for finding in diagnosis.findings if finding.code == "PYR516"]
    assert [finding.where.op for finding in findings] == ["aten::slow_conv3d_forward"]
    assert findings[0].cost is not None
    assert Path(findings[0].where.file or "").name == "video_encoder.py"
    assert "2 calls per step" in findings[0].message


def test_the_video_encoders_largest_operator_is_a_finding_with_its_line() -> None:
    assert_is_convolution(checked("video_encoder").diagnosis)


@anew
@pytest.mark.exhaustive  # as the faults of the perception model
def test_the_operator_is_found_where_the_video_encoder_is_observed_anew() -> None:
    assert_is_convolution(diagnosed_anew("video_encoder"))


def test_the_video_encoder_in_two_dimensions_gives_the_same() -> None:
    broken, fixed = load("video_encoder.py:workload"), load("video_encoder.py:fixed")
    with torch.inference_mode():
        clips = torch.randn(1, 3, 8, 64, 64)
        torch.testing.assert_close(fixed.model(clips), broken.model(clips), atol=1e-5, rtol=1e-4)  # type: ignore[attr-defined]


def test_the_video_encoder_in_two_dimensions_is_faster() -> None:
    broken, fixed = (evidence_of("video_encoder", variant).step_s for variant in ("workload", "fixed"))
    assert broken is not None
    assert fixed is not None
    assert fixed < 0.9 * broken


def test_the_reading_of_the_mended_video_encoder_does_not_name_the_operator() -> None:
    mended = checked("video_encoder", "fixed")
    assert "slow_conv3d" not in " ".join(step.answer for step in mended.diagnosis.reading)


def assert_is_leak(leak: Finding) -> None:
    assert (leak.code, leak.severity) == ("PYR202", "error")
    assert "RobotController.history_buffer" in leak.message
    assert Path(leak.where.file or "").name == "robot_controller.py"
    assert leak.where.line == line_of(
        "robot_controller.py", 'append({"perception": perception, "plan": plan})'
    )
    assert leak.cost is not None
    assert leak.cost.bytes


def test_the_leak_of_a_controller_is_an_error_with_its_line_and_its_holder() -> None:
    assert_is_leak(checked("robot_controller").diagnosis.findings[0])


@anew
def test_the_leak_is_found_where_the_controller_is_observed_anew() -> None:
    assert_is_leak(diagnosed_anew("robot_controller").findings[0])


def test_the_controller_that_forgets_is_clean() -> None:
    serious = [
        finding
        for finding in checked("robot_controller", "fixed").diagnosis.findings
        if finding.severity != "info" and not finding.code.startswith("PYR0")
    ]
    assert serious == [], [finding.message for finding in serious]


@pytest.fixture
def mended(tmp_path: Path) -> Callable[..., Path]:
    """`mended("item")`: a copy of the broken program in which these faults are mended."""

    def write(*which: str) -> Path:
        folder = tmp_path / "-".join(["mended", *which]).replace(" ", "_")
        folder.mkdir()
        return write_mended(folder, *which)

    return write


def faults_of(diagnosis: Diagnosis, file: Path) -> dict[str, set[int | None]]:
    """The exercise's codes that were found in its own file, with their lines.

    A mask costs nothing where no device waits for it: on a CPU only the source is asked about it.
    """
    source = Case(target=str(file), modules=tuple(program_modules([file])[0]))
    masks = findings_of(source, [find_rule(MENDS["mask"].code)])
    lines: dict[str, set[int | None]] = {}
    for finding in [*diagnosis.findings, *masks]:
        here = Path(finding.where.file or "").name == "broken_perception.py"
        if here and finding.code in {mend.code for mend in MENDS.values()}:
            lines.setdefault(finding.code, set()).add(finding.where.line)
    return lines


def model_in(file: Path) -> Any:
    """The model that a file's workload runs."""
    return load_workload(parse_target(f"{file}:workload")).model  # type: ignore[attr-defined]


def assert_are_all_faults(diagnosis: Diagnosis) -> None:
    faults = faults_of(diagnosis, FILES["broken_perception"])
    assert set(faults) == {mend.code for mend in MENDS.values()}
    for mend in MENDS.values():
        assert starting("broken_perception.py", mend.at) in faults[mend.code], mend.code


def test_each_fault_of_the_broken_perception_model_is_found_at_its_line() -> None:
    assert_are_all_faults(checked("broken_perception").diagnosis)


@anew
def test_each_is_found_where_the_broken_perception_model_is_observed_anew() -> None:
    assert_are_all_faults(diagnosed_anew("broken_perception"))


def starting(file: str, text: str) -> int:
    """The only line of an example that begins with a text."""
    lines = (EXAMPLES / file).read_text(encoding="utf-8").splitlines()
    numbers = [number for number, line in enumerate(lines, 1) if line.strip().startswith(text)]
    assert len(numbers) == 1, (text, numbers)
    return numbers[0]


@pytest.mark.parametrize("which", MENDS)
def test_mending_one_fault_takes_its_finding_and_leaves_the_others(
    which: str, mended: Callable[..., Path]
) -> None:
    file = mended(which)
    evidence = recording(f"mended-{which.replace(' ', '_')}", file).evidence
    left = set(faults_of(explain(evidence, (file,)), file))
    assert left == {mend.code for mend in MENDS.values()} - {MENDS[which].code}


@pytest.mark.exhaustive
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
