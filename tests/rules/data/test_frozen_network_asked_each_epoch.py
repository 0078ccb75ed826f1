"""PYR318: answers of a frozen network, asked for anew in each epoch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from pyrometer.host.profile import HostLeaf, HostLine, HostProfile
from pyrometer.place import Place
from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding
from pyrometer.source.module import Module

CODE = "PYR318"

SOURCE = """
import torch


def distil(teacher, student, loader, optimizer, epochs):
    for epoch in range(epochs):
        for x, y in loader:
            x = x.to("cpu")
            with torch.no_grad():
                wanted = teacher(x)
            loss = torch.nn.functional.mse_loss(student(x), wanted)
            loss.backward()
            optimizer.step()
"""


def case_of(source: str, share: float = 0.7) -> Case:
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "wanted = " in text)
    leaf = HostLeaf(kind="operator", name="teacher", seconds_per_step=share)
    place = Place(file="train.py", line=line, function="distil")
    profile = HostProfile(
        steps=20,
        samples=1000,
        interval_s=0.001,
        step_s=1.0,
        lines=[HostLine(where=place, own_s=share, total_s=share, leaves=[leaf])],
    )
    return Case(target="test", host=profile, modules=(Module.parse("train.py", source),))


def test_the_call_of_the_teacher_is_told_with_what_it_takes(only: Callable[..., Finding]) -> None:
    finding = only(CODE, case_of(SOURCE))
    gain = finding.advice.gain
    assert finding.where.line == 10
    assert "70 %" in finding.message.replace("70.0", "70")
    assert gain is not None
    assert 0.2 < (gain.ratio_low or 0) < 0.4 < (gain.ratio_high or 0) < 0.8


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("with torch.no_grad():", "if True:"),
        ("for epoch in range(epochs)", "for fold in folds"),
        ('x = x.to("cpu")', "x = augment(x)"),
        ("optimizer.step()", "optimizer.step()\n            follow(teacher, student)"),
        ("teacher(x)", "teacher(x + torch.randn_like(x), other)"),
    ],
)
def test_new_samples_and_networks_that_change_are_left_alone(
    findings: Callable[..., list[Finding]], old: str, new: str
) -> None:
    assert findings(CODE, case_of(SOURCE.replace(old, new))) == []


def test_a_loop_over_epochs_is_known_whatever_its_variable_is_called(only: Callable[..., Finding]) -> None:
    source = SOURCE.replace("for epoch in range(epochs)", "for _ in range(30)").replace(
        "teacher", "semantics"
    )
    assert "`semantics`" in only(CODE, case_of(source)).message


def test_a_small_share_is_left_alone(findings: Callable[..., list[Finding]]) -> None:
    assert findings(CODE, case_of(SOURCE, share=0.1)) == []


def test_kept_answers_train_the_same_student(run: Callable[..., dict[str, Any]]) -> None:
    ends = []
    for title in ("Example", "Use instead"):
        torch.manual_seed(0)
        features, labels = torch.randn(8, 4), torch.zeros(8)
        student = torch.nn.Linear(4, 2)
        given = {
            "torch": torch,
            "DataLoader": DataLoader,
            "TensorDataset": TensorDataset,
            "features": features,
            "labels": labels,
            "loader": DataLoader(TensorDataset(features, labels), batch_size=32),
            "teacher": torch.nn.Linear(4, 2),
            "student": student,
            "optimizer": torch.optim.SGD(student.parameters(), lr=0.1),
            "loss_of": lambda guess, wanted, _: (guess - wanted).square().mean(),
            "epochs": 3,
        }
        run(CODE, title, **given)
        ends.append(student.weight.detach())
    torch.testing.assert_close(*ends)
