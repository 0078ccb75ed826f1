"""What differs between two stored documents, part by part."""

from __future__ import annotations

import msgspec

from pyrometer.advice import Advice
from pyrometer.place import Place
from pyrometer.record import to_dict
from pyrometer.rules.finding import Finding
from pyrometer.store.changes import changes_of

READING = [{"question": "is it steady?"}]


def finding(code: str, line: int, file: str = "train.py") -> dict:
    return to_dict(
        Finding(
            code=code,
            name="a-rule",
            severity="warning",
            message="it waits",
            where=Place(file=file, line=line),
            confidence="high",
            advice=Advice(slug="a", title="do not wait", fix_class="exact"),
        )
    )


def phase(name: str, mean_s: float) -> dict:
    return {"name": name, "median_s": mean_s, "mean_s": mean_s, "share": 0.5}


def test_parts_are_laid_beside_each_other_in_the_order_of_the_first(make_run):
    a = make_run(
        document={"evidence": {"measurement": {"phases": [phase("data", 0.2), phase("forward", 0.1)]}}}
    )
    b = make_run(
        document={"evidence": {"measurement": {"phases": [phase("forward", 0.1), phase("rest", 0.05)]}}}
    )
    found = [(amount.name, amount.a, amount.b) for amount in changes_of(a, b).phases_s]
    assert found == [("data", 0.2, 0.0), ("forward", 0.1, 0.1), ("rest", 0.0, 0.05)]


def test_traced_parts_are_shares_of_their_own_whole(make_run):
    a = make_run(document={"evidence": {"trace": {"breakdown_ns": {"host": 300, "data": 100}}}})
    b = make_run(document={"evidence": {"trace": {"breakdown_ns": {"host": 10}}}})
    found = {part.name: (part.a, part.b) for part in changes_of(a, b).parts}
    assert found == {"host": (0.75, 1.0), "data": (0.25, 0.0)}


def test_a_finding_that_moved_to_another_line_is_the_same(make_run):
    a = make_run(
        document={"diagnosis": {"findings": [finding("PYR101", 3), finding("PYR301", 9)], "reading": READING}}
    )
    b = make_run(
        document={
            "diagnosis": {"findings": [finding("PYR101", 30), finding("PYR102", 9)], "reading": READING}
        }
    )
    changes = changes_of(a, b)
    assert [one.code for one in changes.findings_gone] == ["PYR301"]
    assert [one.code for one in changes.findings_new] == ["PYR102"]
    assert changes.num_findings_kept == 1


def test_the_same_rule_in_another_file_is_another_finding(make_run):
    a = make_run(document={"diagnosis": {"findings": [finding("PYR101", 3)], "reading": READING}})
    b = make_run(
        document={"diagnosis": {"findings": [finding("PYR101", 3, file="eval.py")], "reading": READING}}
    )
    assert changes_of(a, b).num_findings_kept == 0


def test_settings_that_differ_are_named_with_both_values(make_run):
    a, b = make_run(), make_run()
    a = msgspec.structs.replace(a, environment={"torch": "2.12", "os": "Linux", "settings": {"tf32": "off"}})
    b = msgspec.structs.replace(b, environment={"torch": "2.13", "os": "Linux", "settings": {}})
    found = [(setting.name, setting.a, setting.b) for setting in changes_of(a, b).settings]
    assert found == [("torch", "2.12", "2.13"), ("tf32", "off", "–")]


def test_counts_of_a_compilation(make_run):
    a = make_run(document={"evidence": {"compiled": {"graphs": 3, "breaks": [{}, {}], "recompiles": []}}})
    b = make_run(document={"evidence": {"compiled": {"graphs": 2, "breaks": [{}], "recompiles": []}}})
    found = {amount.name: (amount.a, amount.b) for amount in changes_of(a, b).compiled}
    assert found == {"graphs": (3, 2), "graph breaks": (2, 1), "recompilations": (0, 0)}


def test_what_one_side_did_not_look_at_has_not_changed(make_run):
    b = make_run(document={"evidence": {"compiled": {"graphs": 2, "breaks": [{}], "recompiles": []}}})
    assert changes_of(make_run(), b).compiled == []


def test_documents_that_hold_nothing_alike_differ_in_nothing(make_run):
    changes = changes_of(make_run(document={}), make_run(document={}))
    assert changes == type(changes)()
