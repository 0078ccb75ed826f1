"""The step without its most expensive places, as a report tells it."""

from __future__ import annotations

from typing import Any

from pyrometer.bench.ceiling import Ceiling
from pyrometer.place import Place
from pyrometer.report.facts.ceilings import ceilings_section


def ceiling(ratio: float, **fields: Any) -> Ceiling:
    told = {
        "where": Place(file="/home/me/model.py", line=7, function="Net.table"),
        "what": "function",
        "calls_per_step": 12,
        "ratio": ratio,
        "ratio_low": ratio - 0.02,
        "ratio_high": ratio + 0.03,
        "pairs": 40,
        "same_inputs": True,
        "same_results": True,
    }
    return Ceiling(**told | fields)


def test_what_brings_most_comes_first_with_its_interval_and_its_place() -> None:
    loader = ceiling(0.4, what="loader", where=Place(phase="data"), calls_per_step=1, same_inputs=False)
    part = ceiling(
        0.9, where=Place(file="m.py", line=3, function="Mlp.forward", module="body.2"), what="module"
    )
    table = ceilings_section([part, ceiling(0.42), loader]).table
    assert table is not None
    assert list(table.rows) == [
        ("the loader", "–", "1", "0.40× (0.38–0.43)", "the same results"),
        ("Net.table", "model.py:7", "12", "0.42× (0.40–0.45)", "the same values"),
        ("Mlp.forward (body.2)", "m.py:3", "12", "0.90× (0.88–0.93)", "the same values"),
    ]
