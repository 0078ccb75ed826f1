"""What goes at most when the work around a place is replaced."""

from __future__ import annotations

import pytest

from pyrometer.host.profile import HostFunction, HostLeaf, HostLine, HostProfile, LeafKind
from pyrometer.place import Place
from pyrometer.rules.case import Case
from pyrometer.rules.replaced import replaced_share
from pyrometer.source.module import Module

TEXT = """
def follow(teacher, student):
    old = copy.deepcopy(teacher.state_dict())
    for name, value in student.state_dict().items():
        old[name] = old[name] * 0.9 + value * 0.1
    teacher.load_state_dict(old)
"""
COPY = Place(file="mean.py", line=3, function="follow")


def case(own: float, kind: LeafKind = "operator", calls: float | None = 1.0) -> Case:
    """A function that takes this part of a step of a second, half of it in a line of this kind."""
    loop = Place(file="mean.py", line=5, function="follow")
    profile = HostProfile(
        steps=10,
        samples=400,
        interval_s=0.001,
        step_s=1.0,
        lines=[
            HostLine(
                where=loop,
                own_s=own / 2,
                total_s=own / 2,
                leaves=[HostLeaf(kind=kind, name="x", seconds_per_step=own / 2)],
            )
        ],
        functions=[HostFunction(where=loop, first_line=2, own_s=own, total_s=own, calls_per_step=calls)],
    )
    return Case(target="a", host=profile, modules=[Module.parse("mean.py", TEXT)])


def test_what_its_function_does_with_the_copies_goes_with_them() -> None:
    assert replaced_share(case(0.5), COPY, 0.2) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("known", "share"),
    [
        (case(0.95), 0.3),  # the function is the step
        (case(0.5, kind="backward"), 0.3),  # it drives the step
        (case(0.5, calls=None), 0.3),
        (case(0.5), 0.05),  # it does something else
        (Case(target="a"), 0.3),
    ],
)
def test_of_a_function_that_does_something_else_just_the_place_counts(known: Case, share: float) -> None:
    assert replaced_share(known, COPY, share) == share
