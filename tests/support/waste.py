"""Facts about work that nobody needs, as rules read them."""

from __future__ import annotations

from typing import Any

from pyrometer.dataflow.report import (
    ConstantTail,
    DataflowReport,
    LateLinear,
    MostlyZero,
    PartlyUsed,
    ProductOrder,
    Repeated,
    Subnormal,
    Unread,
)
from pyrometer.place import Place
from pyrometer.rules.case import Case

LINE = Place(file="model.py", line=12, function="forward")


def fact(code: str, share: float) -> dict[str, Any]:
    """What a rule reads, at this share of the operators' time."""
    spent = {"where": LINE, "share": share}
    unread = {**spent, "operators": ["aten::mm"], "calls_per_step": 4, "seconds_per_step": 0.1}
    again = {**unread, "calls_per_step": 39, "results": 3, "of_line": 1.0}
    facts: dict[str, dict[str, Any]] = {
        "PYR128": {"repeated": [Repeated(**again, since="step before")]},
        "PYR534": {
            "late_linear": [
                LateLinear(
                    **spent,
                    copied=Place(file="model.py", line=9),
                    by="aten::upsample_nearest2d",
                    operator="aten::convolution",
                    distinct=0.25,
                    seconds_per_step=0.1,
                )
            ]
        },
        "PYR536": {
            "product_orders": [
                ProductOrder(
                    **spent,
                    second=Place(file="model.py", line=13),
                    shape=[8, 2048, 2048],
                    left=0.03,
                    seconds_per_step=0.1,
                )
            ]
        },
        "PYR537": {
            "subnormal": [
                Subnormal(
                    **spent,
                    operators=["aten::mul_"],
                    subnormal_share=0.5,
                    calls_per_step=4,
                    seconds_per_step=0.1,
                )
            ]
        },
        "PYR134": {"repeated": [Repeated(**again, since="same step")]},
        "PYR530": {
            "partly_used": [
                PartlyUsed(
                    **spent,
                    selected=Place(file="model.py", line=14),
                    by="aten::index",
                    used=0.1,
                    operators=["aten::mm"],
                    seconds_per_step=0.1,
                )
            ]
        },
        "PYR531": {"unread": [Unread(**unread, what="gradients", num_leaves=4)]},
        "PYR532": {"unread": [Unread(**unread, what="results")]},
        "PYR533": {
            "mostly_zero": [
                MostlyZero(
                    **spent,
                    shape=[9, 9],
                    zero_share=0.99,
                    one_hot=False,
                    calls_per_step=1,
                    seconds_per_step=0.1,
                )
            ]
        },
        "PYR317": {
            "constant_tails": [
                ConstantTail(**spent, shape=[4, 100], columns=100, tail=80.0, fewest=70, num_steps=4)
            ]
        },
    }
    return facts[code]


def case_at(code: str, share: float, step_operator_s: float = 1.0) -> Case:
    return Case(
        target="test",
        dataflow=DataflowReport(
            num_steps=4, calls_per_step=9, step_operator_s=step_operator_s, **fact(code, share)
        ),
    )
