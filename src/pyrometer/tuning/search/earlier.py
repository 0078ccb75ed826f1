"""What earlier searches on a machine say of the next one: levers that brought more, or less, than was expected, and how far pairs vary.

Each search of the store is one observation of a lever: what was measured over what had been predicted, before anything was learned.
Their geometric mean corrects the range of the next prediction. Few searches say little, so the mean is drawn towards 1 (partial
pooling; Gelman and Hill, Data Analysis Using Regression and Multilevel Models, 2007, chapter 12): with n targets by n / (n + 1).
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pyrometer.quantity import Ratio
from pyrometer.tuning.outcome import Tuning
from pyrometer.tuning.predictions import PredictedLever, predicted_levers
from pyrometer.tuning.search.ordering import Prediction
from pyrometer.tuning.search.spread import Spread, spread_of

DRAWN = 1.0
"""As many targets that would have had no correction."""


class Earlier(NamedTuple):
    """What searches and proofs on this machine found.

    Attributes:
        predicted: levers beside what they brought.
        confirmed: the ln ratios of the pairs of each recipe that was proved in fresh processes.
    """

    predicted: Sequence[PredictedLever] = ()
    confirmed: Sequence[Sequence[float]] = ()

    @classmethod
    def of(cls, tunings: Iterable[Tuning]) -> Earlier:
        """Of searches and verifications as the store keeps them."""
        known = list(tunings)
        return cls(
            [
                lever
                for each in known
                for lever in predicted_levers(each.run_id or "", each.target, each.levers)
            ],
            [each.final.log_ratios for each in known if each.final is not None],
        )

    @property
    def spread(self) -> Spread:
        """How far pairs of fresh processes vary here."""
        return spread_of(self.confirmed)


NOTHING_EARLIER = Earlier()


def corrections_of(earlier: Iterable[PredictedLever]) -> dict[str, Ratio]:
    """By lever: the factor by which predictions were off; a target counts once, however often it was searched.

    Where a finding said something of the very program, its range was not what is corrected here.

    >>> met = dict(run_id="", rules=[], predicted_low=0.5, predicted_high=0.72, measured_low=0.3, measured_high=0.3)
    >>> seen = [PredictedLever(target=target, lever="openvino", measured=0.3, **met) for target in ("a", "b", "c")]
    >>> {name: round(factor, 2) for name, factor in corrections_of(seen).items()}
    {'openvino': 0.59}
    """
    logs: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for each in earlier:
        if each.rules:
            continue
        off = math.log(max(each.measured, 1e-3) / each.predicted * each.learned)
        logs[each.name][each.target].append(off)
    return {
        name: math.exp(sum(map(statistics.fmean, targets.values())) / (len(targets) + DRAWN))
        for name, targets in logs.items()
    }


def corrected(priors: Mapping[str, Prediction], earlier: Iterable[PredictedLever]) -> dict[str, Prediction]:
    """What is known of levers on other machines, by what they brought on this one."""
    factors = corrections_of(earlier)
    return {name: _scaled(prior, factors.get(name, 1.0)) for name, prior in priors.items()}


def _scaled(prior: Prediction, factor: Ratio) -> Prediction:
    if prior.low is None or prior.high is None:
        return prior
    return prior._replace(low=prior.low * factor, high=prior.high * factor, learned=factor)
