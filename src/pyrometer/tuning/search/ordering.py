"""In which order levers are tried: what findings predict, else what is expected, by the minute."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pyrometer.quantity import Ratio
from pyrometer.rules.finding import Finding
from pyrometer.tuning.levers.choice import LeverChoice
from pyrometer.tuning.levers.lever import LeverOf
from pyrometer.tuning.levers.registry import find_lever

PROMISES_LITTLE = 0.9
"""Expected ratio above which a lever that no finding advises waits for the others, where time is short."""

LOSES = 1.1
"""Expected ratio above which it waits in any case."""

QUICK_MINUTES = 0.5

OPENING_MINUTES = 0.5
"""What trying a lever takes beside applying it: a process, its check, its comparison."""

LATER_CHOICE = 0.3
"""Of a lever's gain, for each of its choices after the first: the first ones of other levers come before them, as does its own."""


class Prediction(NamedTuple):
    """What is expected of a lever.

    Attributes:
        low: the best case, as a ratio of new over old time.
        high: the worst case.
        rules: codes of the rules whose findings say so.
        learned: by what both were moved, from earlier searches on this machine.
    """

    low: float | None = None
    high: float | None = None
    rules: tuple[str, ...] = ()
    learned: Ratio = 1.0


def predictions_of(findings: Iterable[Finding]) -> dict[str, Prediction]:
    """By lever: the range of the finding that promises most, and all rules that advise it."""
    predicted: dict[str, Prediction] = {}
    for finding in findings:
        name, gain = finding.advice.lever, finding.advice.gain
        if name is None:
            continue
        before = predicted.get(name, Prediction())
        rules = tuple(dict.fromkeys([*before.rules, finding.code]))
        low = gain.ratio_low if gain else None
        high = gain.ratio_high if gain else None
        if before.low is not None and (low is None or before.low <= low):
            low, high = before.low, before.high
        predicted[name] = Prediction(low, high, rules)
    return predicted


def in_order(
    choices: Mapping[str, list[LeverChoice]], predicted: Mapping[str, Prediction], *, hurried: bool = False
) -> list[LeverChoice]:
    """All choices, the most promising first.

    What promises something and is applied within seconds comes first. Then what runs the model, since it decides most; then
    precision and quantisation, most of which pay only under a compiler; then what is rewritten or set, which many executors do
    by themselves. Among those what a finding advises comes first, then expected gain: the logarithm of the expected ratio, over
    the time that the lever takes to be tried. What was slower wherever it was measured comes last, and where there is no time
    for all, what promises little as well.
    """
    flat = [
        (name, number, choice) for name, listed in choices.items() for number, choice in enumerate(listed)
    ]
    ranked = sorted(
        flat,
        key=lambda item: (
            not _advised(item[0], predicted)
            and expected_ratio(item[0], predicted) > (PROMISES_LITTLE if hurried else LOSES),
            -1 if _is_quick(item[0], predicted) else _phase(find_lever(item[0])),
            *_promise(item[0], item[1], predicted),
        ),
    )
    return [choice for _, _, choice in ranked]


def _phase(lever: LeverOf[Any]) -> int:
    order = {"executor": 0, "precision": 1, "quantisation": 2, "structure": 3, "layout": 3, "settings": 4}
    return order[lever.place]


def _is_quick(name: str, predicted: Mapping[str, Prediction]) -> bool:
    """Whether a lever promises something and takes seconds: it must not wait for what takes minutes."""
    lever = find_lever(name)
    by_itself = lever.place in {"structure", "layout"} or name in predicted
    return by_itself and lever.minutes < QUICK_MINUTES and expected_ratio(name, predicted) <= PROMISES_LITTLE


def _advised(name: str, predicted: Mapping[str, Prediction]) -> bool:
    return bool(predicted.get(name, Prediction()).rules)


def expected_ratio(name: str, predicted: Mapping[str, Prediction]) -> Ratio:
    """The geometric middle of what is predicted of a lever, else what its class expects."""
    prediction = predicted.get(name, Prediction())
    if prediction.low is None or prediction.high is None:
        return find_lever(name).prior
    return math.sqrt(max(prediction.low, 1e-3) * max(prediction.high, 1e-3))


def _promise(name: str, number: int, predicted: Mapping[str, Prediction]) -> tuple[int, float, str, int]:
    ratio, minutes = expected_ratio(name, predicted), OPENING_MINUTES + find_lever(name).minutes
    gain = -math.log(max(ratio, 1e-3)) / minutes
    gain *= LATER_CHOICE ** (number if gain > 0 else -number)
    return (0 if _advised(name, predicted) and number == 0 else 1), -gain, name, number
