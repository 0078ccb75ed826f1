"""The function around a place, where the place is what it is there for."""

from __future__ import annotations

import pytest

from pyrometer.host.profile import HostFunction, HostLeaf, HostLine, HostProfile, LeafKind
from pyrometer.place import Place
from pyrometer.rules.case import Case
from pyrometer.rules.surroundings import surroundings
from pyrometer.source.module import Module

TEXT = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        old = copy.deepcopy(x)
        for name, value in x.items():
            old[name] = self.layer(old[name])
        return old
"""
COPY = Place(file="mean.py", line=10, function="forward")


def case(own: float, kind: LeafKind = "operator", name: str = "x") -> Case:
    """A function that takes this part of a step of a second, half of it in a line of this kind."""
    loop = Place(file="mean.py", line=12, function="forward")
    leaf = HostLeaf(kind=kind, name=name, seconds_per_step=own / 2)
    profile = HostProfile(
        steps=10,
        samples=400,
        interval_s=0.001,
        step_s=1.0,
        lines=[HostLine(where=loop, own_s=own / 2, total_s=own / 2, leaves=[leaf])],
        functions=[HostFunction(where=loop, first_line=9, own_s=own, total_s=own)],
    )
    return Case(target="a", host=profile, modules=(Module.parse("mean.py", TEXT),))


def test_what_its_function_does_with_the_copies_goes_with_them() -> None:
    around = surroundings(case(0.5), COPY, 0.2)
    assert around is not None
    assert (around.share, around.part, around.ceiling) == (pytest.approx(0.5), 1.0, None)


def test_the_layers_that_a_function_runs_stay() -> None:
    around = surroundings(case(0.5, name="self.layer"), COPY, 0.2)
    assert around is not None
    assert (around.share, around.part) == (pytest.approx(0.25), 0.5)


@pytest.mark.parametrize(
    ("known", "share"),
    [
        (case(0.95), 0.4),  # the function is the step
        (case(0.5, kind="backward"), 0.3),  # it drives the step
        (case(0.5), 0.05),  # it does something else
        (Case(target="a"), 0.3),
    ],
)
def test_a_function_that_does_something_else_stays(known: Case, share: float) -> None:
    assert surroundings(known, COPY, share) is None
