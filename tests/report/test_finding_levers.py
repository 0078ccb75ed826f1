"""A finding whose lever can be tried on its target says how."""

from __future__ import annotations

import pytest

from pyrometer.advice import Advice
from pyrometer.place import Place
from pyrometer.report.facts.finding_levers import tune_command
from pyrometer.rules.finding import Finding


def advising(lever):
    advice = Advice(slug="a", title="", fix_class="exact", lever=lever)
    return Finding(
        code="PYR600",
        name="n",
        severity="warning",
        message="",
        where=Place(),
        confidence="high",
        advice=advice,
    )


@pytest.mark.parametrize(
    ("lever", "target", "command"),
    [
        ("channels_last", "model.py:work", "pyrometer tune model.py:work --only channels_last"),
        ("channels_last", "train.py", ""),
        ("ddp_buckets", "train.py", "pyrometer tune train.py --nproc 2 --only ddp_buckets"),
        ("ddp_buckets", "model.py:work", ""),
        ("ddp_buckets", "trace.json", ""),
        ("remove_sync", "model.py:work", ""),
        (None, "model.py:work", ""),
    ],
)
def test_a_lever_of_ranks_is_tried_on_the_script_and_any_other_on_a_factory(lever, target, command):
    assert tune_command(target, advising(lever)) == command
