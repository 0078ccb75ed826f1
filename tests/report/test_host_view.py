"""The chapter on the host's time."""

from __future__ import annotations

from pyrometer.host.profile import HostLeaf, HostLine, HostLoop, HostProfile
from pyrometer.place import Place
from pyrometer.report.facts.host import section

LOOP = Place(file="/p/train.py", line=40)


def profile(*lines: HostLine, **more) -> HostProfile:
    return HostProfile(steps=3, samples=90, interval_s=2e-3, step_s=10e-3, lines=list(lines), **more)


def line(
    number: int, own_s: float, kind: str = "json", name: str = "json.dumps", loop: Place | None = None
) -> HostLine:
    leaf = HostLeaf(kind=kind, name=name, seconds_per_step=own_s)
    where = Place(file="/p/train.py", line=number, source="text = json.dumps(row)")
    return HostLine(where=where, own_s=own_s, total_s=own_s, leaves=[leaf], loop=loop)


def test_a_line_stands_with_its_share_what_it_does_and_its_loop():
    loops = [HostLoop(where=LOOP, over="rows", rounds_per_step=2000, total_s=6e-3)]
    told = section(profile(line(41, 6e-3, loop=LOOP), loops=loops))
    assert told.table.rows == [
        (
            "train.py:41",
            "6.00 ms",
            "60.0 %",
            "JSON: json.dumps",
            "line 40, 2,000 rounds",
            "text = json.dumps(row)",
        )
    ]


def test_what_was_not_counted_is_not_told():
    told = section(
        profile(line(41, 6e-3, loop=LOOP), loops=[HostLoop(where=LOOP, over="rows", total_s=6e-3)])
    )
    assert told.table.rows[0][4] == "line 40"


def test_small_lines_are_left_out():
    assert section(profile(line(41, 0.05e-3))) is None


def test_the_cost_of_sampling_and_notes_are_told():
    told = section(profile(line(41, 6e-3), overhead_share=0.021, outside_s=1e-3, notes=["only 12 looks"]))
    facts = {fact.label: fact.value for fact in told.facts}
    assert facts["sampling lengthened a step by"] == "2.1 %"
    assert facts["without a line of yours"] == "10.0 %"
    assert facts["note"] == "only 12 looks"
