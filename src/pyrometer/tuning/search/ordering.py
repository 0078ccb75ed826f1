"""In which order levers are tried: what findings predict, else what is expected, by the minute."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pyrometer.rules.finding import Finding
from pyrometer.tuning.levers.choice import LeverChoice
from pyrometer.tuning.levers.lever import Lever
from pyrometer.tuning.levers.registry import find_lever

PROMISES_LITTLE = 0.9
"""Expected ratio above which a lever that no finding advises waits for the others, where time is short."""

LATER_CHOICE = 0.3
"""Of a lever's gain, for each of its choices after the first: the first ones of other levers come before them."""


class Prediction(NamedTuple):
    """What findings say of a lever: ratios of new over old time, and the codes of their rules."""

    low: float | None = None
    high: float | None = None
    rules: tuple[str, ...] = ()


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

    What a finding advises comes first. Then expected gain: the logarithm of the expected ratio, over the time that the lever
    takes to be tried. Levers whose effect depends on what runs the model (precision, quantisation) come after executors, since
    most pay only under a compiler. Where there is no time for all, those that promise little come last.
    """
    flat = [
        (name, number, choice) for name, listed in choices.items() for number, choice in enumerate(listed)
    ]
    ranked = sorted(
        flat,
        key=lambda item: (
            hurried and item[0] not in predicted and find_lever(item[0]).prior > PROMISES_LITTLE,
            _phase(find_lever(item[0])),
            *_promise(item[0], item[1], predicted),
        ),
    )
    return [choice for _, _, choice in ranked]


def _phase(lever: Lever) -> int:
    order = {"structure": 0, "layout": 0, "executor": 1, "precision": 2, "quantisation": 3, "settings": 4}
    return order[lever.place]


def _promise(name: str, number: int, predicted: Mapping[str, Prediction]) -> tuple[int, float, str, int]:
    lever, prediction = find_lever(name), predicted.get(name)
    ratio = lever.prior
    if prediction is not None and prediction.low is not None and prediction.high is not None:
        ratio = math.sqrt(max(prediction.low, 1e-3) * max(prediction.high, 1e-3))
    gain = -math.log(max(ratio, 1e-3)) / lever.minutes * LATER_CHOICE**number
    return (0 if prediction and number == 0 else 1), -gain, name, number
