"""The order of findings, and which count the same cost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.advice import Advice, Cost, Gain
from pyrometer.place import Place
from pyrometer.report.facts.finding_views import views
from pyrometer.report.facts.findings import stands_alone
from pyrometer.rules.finding import Finding
from pyrometer.rules.ranking import promise, ranked
from pyrometer.source.module import Module
from recorded import CHECKED, checked

SEVERITIES = ["error", "warning", "info"]
RATIOS = st.one_of(st.none(), st.floats(0, 1.2))


def finding(code: str = "PYR101", **more: Any) -> Finding:
    advice = Advice(slug="a", title="a", fix_class="exact", gain=more.pop("gain", None))
    fields: dict[str, Any] = {"severity": "warning", "confidence": "high", "where": Place(), **more}
    return Finding(code=code, name="n", message="m", advice=advice, **fields)


def gain(low: float | None, high: float | None = None, saves_bytes: int | None = None) -> Gain:
    return Gain(ratio_low=low, ratio_high=high, saves_bytes=saves_bytes, method="bound")


def cost(share: float | None = None, num_bytes: int | None = None) -> Cost:
    return Cost(share=share, bytes=num_bytes, method="trace")


@st.composite
def findings(draw: st.DrawFn) -> Finding:
    low, high = draw(RATIOS), draw(RATIOS)
    return finding(
        draw(st.sampled_from(["PYR101", "PYR301", "PYR515"])),
        severity=draw(st.sampled_from(SEVERITIES)),
        confidence=draw(st.sampled_from(["high", "medium", "low"])),
        gain=draw(st.sampled_from([None, gain(low, high, 100)])),
        cost=draw(st.sampled_from([None, cost(0.3), cost(num_bytes=50)])),
        resource=draw(st.sampled_from([None, "a", "b"])),
    )


def test_the_larger_predicted_gain_comes_first() -> None:
    small, large = (
        finding("PYR101", gain=gain(0.9, 1.0)),
        finding("PYR515", gain=gain(0.1, 0.3)),
    )
    assert ranked([small, large])[0].code == "PYR515"


def test_an_error_comes_before_any_gain() -> None:
    wrong = finding("PYR701", severity="error")
    assert ranked([finding(gain=gain(0.0, 0.0)), wrong])[0].code == "PYR701"


def test_where_nothing_is_predicted_half_of_the_cost_counts() -> None:
    assert promise(finding(cost=cost(0.5))) == 0.25
    assert promise(finding(cost=cost(num_bytes=40)), peak_bytes=100) == 0.2
    assert promise(finding(gain=gain(None, None, 30)), peak_bytes=100) == pytest.approx(0.3)
    assert promise(finding(gain=gain(0.5))) == 0.25  # in the worst case nothing
    assert promise(finding()) == 0.0


@pytest.mark.parametrize(
    "more", [{"gain": gain(0.93, 1.0)}, {"cost": cost(0.08)}, {"gain": gain(None, None, 3)}]
)
def test_what_promises_next_to_nothing_is_a_remark_behind_what_is_not_known(more: dict[str, Any]) -> None:
    small, unknown = finding("PYR101", **more), finding("PYR103")
    assert [(one.code, one.severity) for one in ranked([small, unknown], peak_bytes=100)] == [
        ("PYR103", "warning"),
        ("PYR101", "info"),
    ]


def test_what_explains_another_finding_stays_what_it_is() -> None:
    where = Place(file="a.py", line=3)
    cause = finding("PYR101", gain=gain(0.93, 1.0), where=where)
    symptom = finding("PYR301", scope="symptom", gain=gain(0.3, 1.0), where=where)
    assert [(one.code, one.severity) for one in ranked([cause, symptom])] == [
        ("PYR101", "warning"),
        ("PYR301", "warning"),
    ]


def test_what_speaks_of_the_time_of_a_line_that_is_mended_already_is_another_view() -> None:
    where = Place(file="a.py", line=3)
    first = finding("PYR533", gain=gain(0.4, 0.6), cost=cost(0.5), where=where)
    same = finding("PYR515", gain=gain(0.5, 0.7), cost=cost(0.5), where=where)
    more = finding("PYR121", gain=gain(0.6, 0.8), cost=cost(0.9), where=where)
    other = finding("PYR213", gain=gain(0.6, 0.9), cost=cost(0.4), where=Place(file="b.py", line=3))
    told = {one.code: one.overlaps for one in ranked([first, same, more, other])}
    assert told == {"PYR533": [], "PYR515": ["PYR533"], "PYR121": [], "PYR213": []}


def test_of_what_is_general_half_of_the_promise_counts() -> None:
    general = finding("PYR127", scope="general", gain=gain(0.3, 0.5))
    assert promise(general) == pytest.approx(0.3)
    named = finding("PYR131", gain=gain(0.6, 0.6))
    assert [one.code for one in ranked([general, named])] == ["PYR131", "PYR127"]


def test_what_saves_far_less_at_best_does_not_account_for_a_symptom() -> None:
    waits = finding("PYR301", scope="symptom", gain=gain(0.3, 1.0), cost=cost(0.7), resource="data")
    for best, overlaps in ((0.8, False), (0.4, True)):
        reads = finding(
            "PYR101", scope="mechanism", gain=gain(best, 1.0), cost=cost(0.6), resource="data:item"
        )
        told = {one.code: one.overlaps for one in ranked([waits, reads])}
        assert told["PYR301"] == (["PYR101"] if overlaps else [])


def test_remarks_come_last_and_equal_promises_are_ordered_by_confidence_then_place() -> None:
    order = ranked(
        [
            finding("PYR104", severity="info"),
            finding("PYR103", where=Place(file="a.py", line=9)),
            finding("PYR103", where=Place(file="a.py", line=2)),
            finding("PYR102", confidence="low"),
        ]
    )
    assert [(one.code, one.where.line) for one in order] == [
        ("PYR103", 2),
        ("PYR103", 9),
        ("PYR102", None),
        ("PYR104", None),
    ]


def test_among_remarks_what_names_a_cause_comes_before_any_gain() -> None:
    general = finding("PYR501", severity="info", scope="general", gain=gain(0.3, 1.0))
    assert [one.code for one in ranked([general, finding("PYR131", severity="info")])] == ["PYR131", "PYR501"]


def test_of_findings_about_the_same_cost_the_later_ones_say_so() -> None:
    first = finding("PYR215", resource="op:cat", gain=gain(0.2, 0.3))
    second = finding("PYR511", resource="op:cat", gain=gain(0.3, 0.4))
    other = finding("PYR301", resource="data", gain=gain(0.5, 0.6))
    assert [one.overlaps for one in ranked([other, second, first])] == [[], ["PYR215"], []]


@given(st.lists(findings(), max_size=8), st.one_of(st.none(), st.integers(1, 1000)))
def test_ranking_loses_nothing_and_does_not_depend_on_the_order(
    found: list[Finding], peak: int | None
) -> None:
    order = ranked(found, peak_bytes=peak)
    assert len(order) == len(found)
    keys = [(SEVERITIES.index(one.severity), -round(promise(one, peak), 4)) for one in order]
    assert keys == sorted(keys)
    again = ranked(reversed(found), peak_bytes=peak)
    assert [(one.code, one.severity, one.confidence) for one in order] == [
        (one.code, one.severity, one.confidence) for one in again
    ]


LOOP = """
def forward(x):
    out = []
    for row in x:
        centred = row - row.mean()
        out.append(centred)
    return torch.stack(out)
"""
FILE = "model.py"
MODULES = (Module.parse(FILE, LOOP),)


def cause_and_symptom(line: int = 4, symptom_line: int = 5, **of_cause: Any) -> list[Finding]:
    """A loop, of which little is promised, and many tiny operators, of which much is."""
    cause = finding("PYR109", where=Place(file=FILE, line=line), **of_cause)
    at = Place(file=FILE, line=symptom_line)
    return [cause, finding("PYR111", scope="symptom", where=at, gain=gain(0.2, 0.3), cost=cost(0.7))]


def codes(findings: list[Finding], **more: Any) -> list[str]:
    order = ranked(findings, modules=MODULES, **more)
    assert order == ranked(reversed(findings), modules=MODULES, **more)
    return [each.code for each in order]


def test_the_mechanism_stands_above_the_symptom_within_its_loop_whatever_that_promises() -> None:
    between = finding("PYR301", gain=gain(0.5, 0.6))
    assert codes([*cause_and_symptom(), between]) == ["PYR109", "PYR111", "PYR301"]
    assert ranked(cause_and_symptom(), modules=MODULES)[1].overlaps == ["PYR109"]


@pytest.mark.parametrize(
    ("more", "case"),
    [
        ({"symptom_line": 7}, "another statement"),
        ({"severity": "info"}, "a remark"),
        ({"confidence": "low"}, "a hint"),
        ({"cost": cost(0.05)}, "too little to be the reason"),
        ({"scope": "symptom"}, "another symptom"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_explain_a_symptom_stays_below_it(more: dict[str, Any], case: str) -> None:
    del case
    assert codes(cause_and_symptom(**more))[0] == "PYR111"


def test_without_the_source_only_the_same_line_is_one_place() -> None:
    order = [one.code for one in ranked(cause_and_symptom())]
    assert order == ["PYR111", "PYR109"]
    assert [one.code for one in ranked(cause_and_symptom(symptom_line=4))] == ["PYR109", "PYR111"]


def test_on_one_track_shares_without_room_beside_each_other_are_one_cost() -> None:
    loop = finding("PYR109", cost=cost(0.9), gain=gain(0.6, 1.0))
    tiny = finding("PYR111", scope="symptom", cost=cost(0.9), gain=gain(0.1, 0.2))
    assert codes([loop, tiny], one_track=True) == ["PYR109", "PYR111"]
    assert codes([loop, tiny], one_track=False) == ["PYR111", "PYR109"]


def test_what_is_general_is_left_out_where_something_specific_explains_it() -> None:
    general = finding("PYR820", scope="general", where=Place(file=FILE, line=6), cost=cost(0.6))
    assert codes([*cause_and_symptom(), general]) == ["PYR109", "PYR111"]
    assert codes([general]) == ["PYR820"]
    small, large = (
        finding("PYR109", where=Place(file=FILE, line=7), cost=cost(share)) for share in (0.2, 0.5)
    )
    assert codes([small, general]) == ["PYR820", "PYR109"]
    assert codes([large, general]) == ["PYR109"]  # of the time of one function


def test_what_accounts_for_the_cause_of_a_cost_stands_above_both() -> None:
    module = Module.parse("a.py", "for i in x:\n    f(i)\n    g(i)\n")
    places = [Place(file="a.py", line=line) for line in (1, 2, 3)]
    loop = finding("PYR126", where=places[0], scope="mechanism", cost=cost(0.6), gain=gain(0.5, 0.8))
    operator = finding("PYR516", where=places[1], scope="symptom", cost=cost(0.6), gain=gain(0.3, 0.6))
    rest = finding("PYR133", where=places[1], scope="general", cost=cost(0.7), gain=gain(0.1, 0.3))
    assert [f.code for f in ranked([rest, operator, loop], modules=[module])] == ["PYR126", "PYR516"]


def test_what_grows_without_an_end_comes_before_all_errors() -> None:
    leak = finding("PYR203", severity="warning", resource="leak:a.py:3")
    collected = finding("PYR216", severity="warning", resource="leak:cycles")
    wrong = finding("PYR701", severity="error")
    assert codes([wrong, collected, leak]) == ["PYR203", "PYR701", "PYR216"]


@pytest.mark.parametrize("program", CHECKED)
def test_on_real_programs_the_first_finding_is_the_first_card_and_reservations_are_none(program: str) -> None:
    diagnosis = checked(program).diagnosis
    alone = [stands_alone(each) for each in diagnosis.findings]
    assert not any(alone) or alone[0]
    assert [view.card.finding for view in views(diagnosis.findings)] == diagnosis.findings
    assert not [each.code for each in diagnosis.findings if each.scope == "measurement"]
    assert {each.scope for each in diagnosis.reservations} <= {"measurement"}
