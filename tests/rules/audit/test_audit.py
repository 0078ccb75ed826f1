"""The whole checklist: what is judged, on what, and how the score comes about."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pyrometer.advice import Advice, Cost, Gain
from pyrometer.evidence.evidence import Evidence
from pyrometer.place import Place
from pyrometer.rules.audit.audit import GROUPS, audit, band, breaks
from pyrometer.rules.audit.record import Audit, AuditItem
from pyrometer.rules.case import Case
from pyrometer.rules.explain import explain
from pyrometer.rules.finding import Finding
from pyrometer.rules.registry import find_rule, rules
from pyrometer.rules.rule import Kind
from pyrometer.rules.settings import RuleSettings
from pyrometer.source.module import Module

PARTS = [kind for kind in get_args(Kind) if kind != "source"]
CODES = sorted({code for items in GROUPS.values() for item in items for code in item.rules})


def finding(code: str, severity: Any = "warning") -> Finding:
    return Finding(
        code=code,
        name="n",
        severity=severity,
        message="m",
        where=Place(),
        confidence="high",
        advice=Advice(slug="a", title="a", fix_class="exact"),
    )


def items_of(found: Audit) -> dict[str, AuditItem]:
    return {item.code: item for group in found.groups for item in group.items}


def without(case: Case, parts: set[str]) -> Case:
    gone: dict[str, Any] = {part: None for part in parts if part != "source"}
    return replace(case, **gone, **({"modules": ()} if "source" in parts else {}))


def test_codes_are_unique_and_their_first_digit_is_the_group() -> None:
    codes = [item.code for items in GROUPS.values() for item in items]
    assert len(codes) == len(set(codes))
    for number, items in enumerate(GROUPS.values(), 1):
        first = {item.code[1] for item in items}
        assert len(first) == 1, (number, first)


def test_every_rule_that_an_item_names_exists() -> None:
    for code in CODES:
        assert find_rule(code).code == code


def test_without_evidence_nothing_is_judged_and_there_is_no_score() -> None:
    found = audit(Case(target="t"), [])
    assert (found.score, found.band, found.applicable, found.passed) == (None, None, 0, 0)
    assert {item.status for item in items_of(found).values()} <= {"unknown", "not applicable"}


@given(
    gone=st.sets(st.sampled_from([*PARTS, "source"])),
    codes=st.lists(st.sampled_from(CODES), max_size=4),
    which=st.sampled_from(["trained", "served"]),
)
def test_nothing_passes_or_fails_without_evidence(
    trained: Case, served: Case, gone: set[str], codes: list[str], which: str
) -> None:
    evidence = without(trained if which == "trained" else served, gone)
    found = audit(evidence, [finding(code) for code in codes])
    items = items_of(found)
    for item in items.values():
        if item.status in {"pass", "fail"}:
            assert item.evidence, item.code
            assert any(value is not None for value in item.evidence.values()), item.code
        else:
            assert not item.evidence
        assert item.reason
        assert (item.advice is not None) == (item.status == "fail")
    passed = [item for item in items.values() if item.status == "pass"]
    failed = [item for item in items.values() if item.status == "fail"]
    assert (found.passed, found.applicable) == (len(passed), len(passed) + len(failed))
    assert found.unknown == sum(item.status == "unknown" for item in items.values())
    if found.score is None:
        assert not passed
        assert not failed
    else:
        assert found.score == pytest.approx(100 - sum(item.lost for item in items.values()))
        assert all(
            item.lost == pytest.approx(sum(one.points for one in item.deductions)) for item in items.values()
        )
        assert all(item.status == "fail" for item in items.values() if item.lost)
    assert found.band == band(found.score)


@pytest.mark.parametrize("which", ["trained", "served"])
def test_less_evidence_never_lets_more_pass(trained: Case, served: Case, which: str) -> None:
    whole = trained if which == "trained" else served
    passed = {code for code, item in items_of(audit(whole, [])).items() if item.status == "pass"}
    for part in [*PARTS, "source"]:
        less = items_of(audit(without(whole, {part}), []))
        more = {code for code, item in less.items() if item.status == "pass"} - passed
        assert {code for code in more if items_of(audit(whole, []))[code].status == "fail"} == set(), part


def test_a_real_training_is_judged_on_what_was_observed(trained: Case) -> None:
    found = audit(trained, explain(trained).findings)
    items = items_of(found)
    for code in ("A101", "A102", "A103", "A104", "A105", "A106", "A204"):
        assert items[code].status == "pass", (code, items[code].reason)
    for code, why in {
        "A201": "trains",
        "A303": "CPU",
        "A306": "convolutions",
        "A701": "one process",
        "A803": "serve",
    }.items():
        assert items[code].status == "not applicable"
        assert why in items[code].reason
    assert found.score is not None


def test_a_real_service_is_judged_on_its_source(served: Case) -> None:
    items = items_of(audit(served, explain(served).findings))
    for code in ("A201", "A801", "A802", "A803", "A804", "A805", "A806", "A807"):
        assert items[code].status == "pass", (code, items[code].reason)
    assert items["A106"].status == "not applicable"
    assert items["A401"].status == "not applicable"


def test_items_about_devices_are_judged_with_a_device(on_device: Case) -> None:
    items = items_of(audit(on_device, []))
    for code in ("A301", "A302", "A303", "A308", "A403"):
        assert items[code].status == "pass", (code, items[code].reason)
    assert items["A304"].status == "unknown"  # in which precision is not known without the program


def test_a_finding_fails_the_items_of_its_rule_and_no_other(on_device: Case) -> None:
    quiet = items_of(audit(on_device, []))
    for code in CODES:
        told = items_of(audit(on_device, [finding(code)]))
        changed = {item for item in told if told[item].status != quiet[item].status}
        codes = {item.code for items in GROUPS.values() for item in items if code in item.rules}
        assert changed <= codes, code
        assert all(told[item].status == "fail" for item in codes), code
        assert items_of(audit(on_device, [finding(code, "info")])) == quiet, code


def costly(code: str, *, low: float, high: float, **more: Any) -> Finding:
    """A finding whose advice is predicted to bring so much."""
    gain = Gain(ratio_low=low, ratio_high=high, method="removal")
    return replace(finding(code), advice=Advice(slug="a", title="a", fix_class="exact", gain=gain), **more)


class TestScore:
    """What findings take from it, by their cost."""

    def lost(self, *findings: Finding, **more: Any) -> float:
        score = audit(Case(target="t"), findings, **more).score
        assert score is not None
        return 100 - score

    def test_half_a_step_that_can_be_saved_takes_a_quarter(self) -> None:
        assert self.lost(costly("PYR109", low=0.4, high=0.6)) == pytest.approx(25)

    def test_more_than_three_quarters_of_a_step_hardly_count(self) -> None:
        three_quarters = self.lost(costly("PYR109", low=0.25, high=0.25))
        nearly_all = self.lost(costly("PYR109", low=0.01, high=0.03))
        assert three_quarters == pytest.approx(37.5)
        assert three_quarters < nearly_all < three_quarters + 4

    def test_a_cost_in_seconds_counts_by_the_step(self) -> None:
        measured: Any = SimpleNamespace(complete=True, median_s=2.0, first_call_s=2.0, padding_ratio=None)
        case = Case(target="t", measurement=measured)
        seen = replace(finding("PYR109"), cost=Cost(seconds_per_step=1.0, method="sampled"))
        (deduction,) = items_of(audit(case, [seen]))["A301"].deductions
        assert (deduction.share, deduction.basis) == (0.25, "step")

    def test_what_counts_the_same_cost_takes_it_once(self) -> None:
        first, same = (
            costly("PYR109", low=0.5, high=0.5),
            costly("PYR111", low=0.6, high=0.6, overlaps=["PYR109"]),
        )
        other = costly("PYR101", low=0.8, high=0.8)
        assert self.lost(first, same) == pytest.approx(25)
        assert self.lost(first, other) == pytest.approx(100 - 75 * 0.9)
        wider = costly("PYR111", low=0.3, high=0.3, overlaps=["PYR109"])
        assert self.lost(first, wider) == pytest.approx(35)

    def test_what_stands_within_the_loop_of_another_takes_it_once(self) -> None:
        text = "def clip(grads):\n    for g in grads:\n        n = g.norm()\n        if n.isfinite():\n            g.div_(n)\n    return n\n"
        case = Case(target="t", modules=(Module.parse("m.py", text),))
        loop, inside, after = (
            costly(code, low=0.6, high=0.6, where=Place(file="m.py", line=line))
            for code, line in (("PYR126", 2), ("PYR104", 4), ("PYR213", 6))
        )
        for findings in ([loop, inside], [inside, loop]):
            assert audit(case, findings).score == pytest.approx(80)
        assert audit(case, [loop, after]).score == pytest.approx(64)

    def test_what_nothing_measures_takes_little_and_once_per_item(self) -> None:
        (unmeasured,) = {self.lost(*[finding("PYR109")] * times) for times in (1, 2, 5)}
        assert 0 < unmeasured < 6
        assert self.lost(finding("PYR109"), finding("PYR213")) > unmeasured
        text = 100 - (audit(Case(target="t"), [], [finding("PYR109")]).score or 0)
        assert 0 < text < unmeasured

    def test_wrong_results_take_much_whatever_they_cost(self) -> None:
        wrong = finding("PYR701", severity="error")
        assert self.lost(wrong) >= 15
        assert self.lost(wrong, costly("PYR109", low=0.5, high=0.5)) > 35

    def test_remarks_take_nothing(self) -> None:
        assert audit(Case(target="t"), [finding("PYR109", "info")]).score is None

    @pytest.mark.parametrize("about", [{"scope": "measurement"}, {"resource": "threads:neighbours"}])
    def test_our_measurement_and_the_neighbours_take_nothing(self, about: dict[str, str]) -> None:
        judged = audit(Case(target="t"), [costly("PYR514", low=0.1, high=0.5, **about)])
        assert (judged.score, items_of(judged)["A305"].lost) == (None, 0)

    def test_a_measurement_that_was_cut_short_gives_none(self, trained: Case) -> None:
        assert trained.measurement is not None
        cut = replace(trained, measurement=replace(trained.measurement, complete=False))
        judged = audit(cut, [finding("PYR109")])
        assert (judged.score, judged.band) == (None, None)
        assert "cut short" in judged.notes[0]

    def test_ignoring_a_finding_does_not_raise_it(self) -> None:
        found = costly("PYR109", low=0.4, high=0.6)
        judged = audit(Case(target="t"), [found], excuse=lambda _: "known")
        assert judged.score == pytest.approx(75)
        assert (items_of(judged)["A301"].status, items_of(judged)["A301"].lost) == (
            "unknown",
            pytest.approx(25),
        )
        (deduction,) = items_of(judged)["A301"].deductions
        assert (deduction.code, deduction.ignored, deduction.basis) == ("PYR109", "known", "step")


def test_every_rule_that_can_fail_a_program_fails_an_item() -> None:
    failing = [rule.code for rule in rules() if rule.severity != "info" and rule.scope != "measurement"]
    items = [item for group in GROUPS.values() for item in group]
    without = [code for code in failing if not any(breaks(item, code) for item in items)]
    assert without == []


def test_what_linting_finds_fails_its_item_and_ignored_is_unknown(tmp_path: Path) -> None:
    hot = """\
import torch

def train(model: torch.nn.Module, loader):
    for batch in loader:
        loss = model(batch).mean()
        loss.backward()
        print(loss.item()){comment}
"""

    def judged(comment: str = "", **settings: Any) -> AuditItem:
        file = tmp_path / "train.py"
        file.write_text(hot.format(comment=comment))
        found = explain(Evidence(target="t"), [file], RuleSettings(**settings), with_audit=True).audit
        assert found is not None
        return items_of(found)["A302"]

    failed = judged()
    assert failed.status == "fail"
    assert failed.lost > 0
    for ignored in (judged("  # noqa: PYR1"), judged("  # pyrometer: ignore[PYR1] once a day")):
        assert (ignored.status, ignored.lost) == ("unknown", failed.lost)
    left_out = judged(ignore={"PYR1": "no GPU here"})
    assert (left_out.status, left_out.lost) == ("unknown", failed.lost)
    assert "no GPU here" in left_out.reason
