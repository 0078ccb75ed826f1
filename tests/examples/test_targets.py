from __future__ import annotations

import pytest

from pyrometer.workload.loading import load_workload
from pyrometer.workload.target import parse_target


@pytest.mark.parametrize(
    ("target", "unit"),
    [
        ("perception.py:workload", "frames"),
        ("perception.py:fixed", "frames"),
        ("perception.py:deployed", "frames"),
        ("gpt/workload.py:workload", "tokens"),
        ("gpt/workload.py:padded", "tokens"),
        ("control_loop.py:workload", "control steps"),
    ],
)
def test_every_factory_is_a_target_that_steps(target, unit, examples):
    work = load_workload(parse_target(f"examples/{target}", cwd=examples.parent))
    assert work.unit == unit
    with work.open() as session:
        outputs = [session.step(session.prepare()) for _ in range(2)]
    assert len(outputs) == 2
    assert session.units_per_step > 0
