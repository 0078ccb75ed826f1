"""The default answer of every verb: one screen, and what is on it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec
import pytest
from document_fixtures import changed
from rich.cells import cell_len

from pyrometer.advice import Advice
from pyrometer.evidence.script_outcome import ScriptOutcome
from pyrometer.host.profile import HostLine, HostProfile
from pyrometer.memory.profile import LeakReport, LeakSite
from pyrometer.place import Place
from pyrometer.report import html
from pyrometer.report.answer.documents import short_answer
from pyrometer.report.answer.lines import MOST_LINES, screen
from pyrometer.report.answer.measured import figure
from pyrometer.report.chapters.documents import tell
from pyrometer.report.documents import Document
from pyrometer.rules.finding import Finding
from pyrometer.text import with_capital
from pyrometer.trace.difference.record import NodeChange, PartChange, TimeChange, TraceDiff
from recorded import ROOT

SCREENS = Path(__file__).parent / "screens"
WIDTH = 80
GOLDEN = {
    "check": "check slow_loader workload",
    "check_inference": "check broken_perception workload",
    "bench": "bench slow_loader workload",
    "trace": "trace tiny_ops workload",
    "trace_job": "trace job late",
    "memory": "memory robot_controller workload",
    "compile": "compile broken_perception workload",
    "audit": "audit broken_perception",
}
MEASURED = (
    "verdict_faster",
    "verdict_undecided",
    "matrix",
    "starts",
    "soak",
    "gpu",
    "no_step",
    "interrupted",
    "training",
    "convolutions",
)


def lines_of(document: Document, width: int = WIDTH, page: str | None = None) -> list[str]:
    answer = short_answer(document, page)
    assert answer is not None
    here = answer._replace(improve=answer.improve.replace(f"{ROOT}/", ""))
    return [line.plain.rstrip() for line in screen(here, width)]


def matches(name: str, lines: list[str]) -> None:
    """Compare with the stored screen; `PYROMETER_UPDATE_SNAPSHOTS=1` stores it instead."""
    text, path = "\n".join(lines) + "\n", SCREENS / f"{name}.txt"
    if os.environ.get("PYROMETER_UPDATE_SNAPSHOTS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", GOLDEN)
def test_screen_is_as_stored(recorded_documents, name):
    matches(name, lines_of(recorded_documents[GOLDEN[name]]))


@pytest.mark.parametrize("name", MEASURED)
def test_screen_of_a_bench_is_as_stored(documents, name):
    matches(name, lines_of(documents[name]))


@pytest.mark.parametrize("width", [60, 80, 140])
def test_every_recorded_document_fits_a_screen(recorded_documents, documents, width):
    for name, document in {**recorded_documents, **documents}.items():
        page = "reports/" + "a_long_folder_name/" * 6 + "report.html" if "check" in name else None
        lines = lines_of(document, width, page)
        assert len(lines) <= MOST_LINES, name
        assert max(map(cell_len, lines)) <= min(width, 100), name


def test_parts_of_a_step_add_up_to_the_measured_median(recorded_documents):
    for name, document in recorded_documents.items():
        answer = short_answer(document)
        if not name.startswith("check") or answer is None or answer.whole is None:
            continue
        median = re.search(r"([\d.]+) (\S+)/step", answer.figure)
        assert median is not None
        assert answer.whole.unit == median[2]
        total = sum(float(part.figure) for part in answer.whole.parts)
        assert total == pytest.approx(float(median[1]), rel=0, abs=1e-9), name


def test_the_first_line_is_the_figure_with_its_interval(recorded_documents):
    first, second = lines_of(recorded_documents["check slow_loader workload"])[:2]
    assert first.startswith("slow_loader.py:workload   696 images/s · 22.6 ms/step (22.5–22.9)")
    assert second.startswith("Data-bound: data 13.5 ms · ")


def test_a_mean_beside_a_median_far_from_it_says_so(recorded_documents):
    m = recorded_documents["check slow_loader workload"].evidence.measurement
    usual, slow = (figure(msgspec.structs.replace(m, mean_s=m.median_s * factor)) for factor in (1.05, 7.0))
    assert " on average" not in usual
    assert re.search(r"/s on average · median 22.6 ms/step \(22.5–22.9\)$", slow)


def test_where_no_rule_knows_a_fault_tune_goes_on(recorded_documents):
    document = recorded_documents["check slow_loader workload"]
    lines = lines_of(changed(document, findings=[], target="examples/slow_loader.py:workload"))
    place = lines.index("Fix first   no rule found a fault")
    assert lines[place + 1].strip() == "pyrometer tune examples/slow_loader.py:workload tries levers"
    assert max(map(cell_len, lines)) <= WIDTH


def test_print_in_python_names_no_command_line(recorded_documents):
    document = recorded_documents["check slow_loader workload"]
    remark = msgspec.structs.replace(document.diagnosis.findings[0], severity="info")
    remarked = changed(document, findings=[remark])
    assert "Fix first   no rule found a fault · 1 remark: --full" in lines_of(remarked)
    text = str(remarked)
    assert "Fix first   no rule found a fault · 1 remark: save()" in text
    assert "--full" not in text
    assert "pyrometer tune" not in text


def test_an_interval_is_never_cut(recorded_documents):
    document = recorded_documents["check slow_loader workload"]
    m = document.evidence.measurement
    slow = changed(document, measurement=msgspec.structs.replace(m, mean_s=m.median_s * 7))
    first, second = lines_of(slow)[:2]
    assert first.endswith(" on average")
    assert second == "median 22.6 ms/step (22.5–22.9)"


def test_a_screen_holds_three_fixes_at_most_and_counts_the_others(documents):
    findings = [finding(f"PYR{code}") for code in range(101, 107)]
    lines = lines_of(changed(documents["training"], findings=findings))
    assert [line for line in lines if re.match(r"\d ", line)] == [
        f"{number} rule-{number + 100}  PYR{number + 100}  train.py:7" for number in (1, 2, 3)
    ]
    assert "Fix first   and 3 more: --full" in lines


def test_what_is_said_of_the_measurement_takes_no_slot_of_a_fix(documents):
    ours = [finding("PYR010", scope="measurement"), finding("PYR514", resource="threads:neighbours")]
    answer = short_answer(changed(documents["training"], findings=[*ours, finding("PYR101")]))
    assert answer is not None
    assert [fix.code for fix in answer.fixes] == ["PYR101"]


def test_a_caveat_is_said_once(documents):
    text = "\n".join(lines_of(documents["bimodal"]))
    assert text.count("other processes busy") == 1
    assert "run `pyrometer" not in text
    assert "pyrometer bench robot.py:loop --budget 30s" in text


def test_failed_items_come_first_in_an_audit(recorded_documents):
    lines = lines_of(recorded_documents["audit broken_perception"])
    assert lines[3].startswith("Failed")
    assert re.match(r"1 .*−\d+\.\d points  A\d+", lines[4])


def test_a_failure_is_told_above_all(documents):
    m = msgspec.structs.replace(
        documents["steady"].evidence.measurement,
        complete=False,
        failure="step 37 raised ValueError: bad shape (train.py:40)",
    )
    lines = lines_of(changed(documents["steady"], measurement=m))
    assert "failed in step 37: ValueError (train.py:40)" in lines[0] + lines[1]
    assert "! step 37 raised ValueError: bad shape (train.py:40)" in lines


def test_a_comparison_names_what_changed_and_leaves_out_what_did_not(recorded_documents):
    def timed(before_ns: float, after_ns: float) -> TimeChange:
        return TimeChange(a_ns=before_ns, b_ns=after_ns, ratio=after_ns / before_ns if before_ns else None)

    def node(name: str, device: TimeChange, host: TimeChange) -> NodeChange:
        return NodeChange(
            path=["net", name, "kernel"], status="common", calls_a=1, calls_b=1, host=host, device=device
        )

    still, longer = timed(2e6, 2e6), timed(1e6, 4e6)
    diff = TraceDiff(
        outcome="slower",
        sentence="1.30× slower",
        step=timed(10e6, 13e6),
        num_steps_a=6,
        num_steps_b=6,
        confidence=0.95,
        margin=0.05,
        parts=[
            PartChange(name="compute", a_ns=9e6, b_ns=12e6),
            PartChange(name="host", a_ns=1000, b_ns=1001),
        ],
        nodes=[node("aten::item", still, longer), node("aten::conv2d", longer, still)],
    )
    document = msgspec.structs.replace(recorded_documents["trace tiny_ops workload"], diff=diff)
    answer = short_answer(document)
    assert answer is not None
    assert answer.whole is not None
    told = [(part.name, part.figure) for part in answer.whole.parts]
    assert told == [("compute", "+3.00 ms"), ("aten::conv2d", "+3.00 ms")]


def test_growth_without_an_end_in_sight_is_told_with_its_place(recorded_documents):
    document = recorded_documents["memory robot_controller workload"]
    site = LeakSite(file="robot.py", line=7, holder="robot.cache")
    leak = LeakReport(
        verdict="growing, not decidable yet",
        sentence="",
        num_steps=60,
        bytes_per_step=1024.0,
        sites=[site],
        steps=[1, 60],
        live_bytes=[2**20, 2**22],
    )
    profile = msgspec.structs.replace(document.profile, leak=leak)
    answer = short_answer(changed(document, memory=profile))
    assert answer is not None
    assert answer.figure.split(" · ")[1] == "growing by 1.00 KiB per step, no end in 60 steps"
    assert answer.bound == "3.00 MiB more alive after step 60 of the 60 watched than after the first"
    assert answer.alerts == ["robot.py:7 makes what stays, held by robot.cache"]


def finding(code: str, **changes) -> Finding:
    values = {
        "code": code, "name": f"rule-{code[3:]}", "severity": "warning", "message": "It costs time.",
        "where": Place(file="src/train.py", line=7), "confidence": "high",
        "advice": Advice(slug="a", title="Leave it out.", fix_class="exact"),
    }  # fmt: skip
    return Finding(**{**values, **changes})


def test_what_ended_a_script_is_said_in_one_alert(documents):
    document = documents["training"]
    failed = msgspec.structs.replace(document.evidence.measurement, failure="the script was ended by SIGTERM")
    script = ScriptOutcome(
        argv=["train.py"], exit_code=-15, wall_s=9.0, num_steps=3, steps_from="module calls"
    )
    answer = short_answer(changed(document, measurement=failed, script=script))
    assert answer is not None
    assert answer.alerts == ["the script was ended by SIGTERM"]


@pytest.mark.parametrize(
    ("share", "alerts"),
    [(0.05, []), (0.62, ["evaluations take 62.0 % of the loop (12.4 s): evaluate less often"])],
)
def test_evaluations_that_take_much_of_the_loop_are_an_alert(documents, share: float, alerts: list[str]):
    script = ScriptOutcome(
        argv=["train.py"], exit_code=0, wall_s=30.0, num_steps=300, steps_from="optimizer steps",
        evaluation_s=12.4, evaluation_share=share,
    )  # fmt: skip
    answer = short_answer(changed(documents["training"], script=script))
    assert answer is not None
    assert answer.alerts == alerts


def test_a_place_that_stands_above_a_sentence_is_here(documents):
    place = Place(file="src/net.py", line=4, function="forward")
    told = msgspec.structs.replace(
        finding("PYR101"), where=place, message="the loop in forward (net.py:4) takes 9 % of the step"
    )
    answer = short_answer(changed(documents["training"], findings=[told]))
    assert answer is not None
    assert answer.fixes[0].sentence == "the loop here takes 9 % of the step"


@pytest.mark.parametrize(
    ("samples", "names"), [(100, ["net.py:4", "net.py:9", "other lines"]), (9, ["forward"])]
)
def test_a_step_of_one_part_is_divided_by_lines_where_no_trace_divides_it(recorded_documents, samples, names):
    lines = [
        HostLine(where=Place(file="/src/net.py", line=line), own_s=own_s, total_s=own_s)
        for line, own_s in ((4, 0.6), (9, 0.3))
    ]
    host = HostProfile(steps=2, samples=samples, interval_s=1e-3, step_s=1.0, lines=lines)
    document = recorded_documents["check broken_perception workload"]
    forward = [phase for phase in document.evidence.measurement.phases if phase.name == "forward"]
    measured = msgspec.structs.replace(document.evidence.measurement, phases=forward)
    answer = short_answer(changed(document, measurement=measured, trace=None, host=host))
    assert answer is not None
    assert answer.whole is not None
    assert [part.name for part in answer.whole.parts] == names
    assert sum(part.share or 0.0 for part in answer.whole.parts) == pytest.approx(1.0)


def test_a_page_tells_the_share_of_what_bounds_once(recorded_documents):
    document = recorded_documents["check slow_loader workload"]
    answer = tell(document).answer
    traced, _, rest = answer.bound.partition("; ")
    said = html.page(document).partition('<section data-page="overview"')[2].partition("</section>")[0]
    assert "Data-bound: data takes " in said
    assert with_capital(rest) in said
    assert traced.startswith("data-bound: ")
    assert traced not in said
