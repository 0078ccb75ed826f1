"""What a lever is expected to bring where others have brought theirs already.

Amdahl, Validity of the single processor approach to achieving large scale computing capabilities (1967): a change shortens a
share of the time, and what others have saved of that share cannot be saved again. Let the others have left the share g of the
baseline's time, and the lever leave r of it by itself. If both shorten all of a step alike, their ratios multiply, and r is left
once more. If they save the same time, the shorter of both is left: r / g, or nothing is saved where r is above g. What a lever costs
in each step stays as long as it is, while the step is shorter: 1 + (r − 1) / g. The range goes from the first to the worst of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from pyrometer.quantity import Ratio
from pyrometer.tuning.levers.choice import LeverChoice
from pyrometer.tuning.outcome import LeverOutcome
from pyrometer.tuning.search.ordering import Prediction


def gains_of(outcomes: Iterable[LeverOutcome]) -> dict[str, Ratio]:
    """By lever of the best configuration: the share of the time that it left, with that of what it took the place of."""
    gains: dict[str, Ratio] = {}
    for each in outcomes:
        if each.outcome == "kept" and each.ratio:
            left = {choice.lever for choice in each.configuration if choice.lever != each.name}
            replaced = [gains.pop(name) for name in list(gains) if name not in left]
            gains[each.name] = each.ratio * math.prod(replaced)
    return gains


def expected_over(
    prediction: Prediction,
    lever: str,
    gains: Mapping[str, Ratio],
    best: Sequence[LeverChoice],
    configuration: Sequence[LeverChoice],
) -> Prediction:
    """The range over the best configuration of what was predicted of a lever over the baseline.

    Args:
        prediction: of the lever by itself.
        lever: its name.
        gains: of the levers of the best configuration, and of an executor that is tried together with the lever.
        best: what the lever is compared with.
        configuration: the best with the lever; what it lacks of the best has to be made up for.

    >>> kept = LeverChoice(lever="cast_bf16")
    >>> both = [kept, LeverChoice(lever="compile")]
    >>> expected_over(Prediction(0.6, 0.9), "compile", {"cast_bf16": 0.5}, [kept], both)[:2]
    (0.6, 1.0)
    >>> expected_over(Prediction(0.4, 0.6), "openvino", {"cast_bf16": 0.5}, [kept], [LeverChoice(lever="openvino")])[:2]
    (0.8, 1.2)
    """
    if prediction.low is None or prediction.high is None:
        return prediction

    def left_by(choices: Iterable[LeverChoice]) -> Ratio:
        return math.prod(gains.get(each.lever, 1.0) for each in choices if each.lever != lever)

    beside = left_by(each for each in configuration if each not in best)
    stays = left_by(each for each in best if each in configuration)
    lost = math.prod(gains.get(each.lever, 1.0) for each in best if each not in configuration)
    high = max(prediction.high, _worst(prediction.high, stays * beside))
    return prediction._replace(low=prediction.low * beside / lost, high=high * beside / lost)


def _worst(ratio: Ratio, gained: Ratio) -> Ratio:
    return 1 + (ratio - 1) / gained if ratio > 1 else min(1.0, ratio / gained)
