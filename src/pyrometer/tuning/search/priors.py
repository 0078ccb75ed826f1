"""What levers brought before, on other models of the same kind and machines of the same kind: ranges in a file.

They span what was measured on a convolutional network, an encoder, a decoder and a small policy, on processors with and without
bfloat16; where bfloat16 was only measured by autocast, the cast has its range.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from importlib import resources

from pyrometer.quantity import Ratio, Seconds
from pyrometer.tuning.search.ordering import Prediction

SMALL_STEP_S: Seconds = 1e-3
"""Below it, what Python and the dispatch of operators take decides, whatever the operators are."""


@functools.cache
def _measured() -> dict[str, dict[str, dict[str, tuple[Ratio, Ratio]]]]:
    text = resources.files(__package__).joinpath("priors.json").read_text(encoding="utf-8")
    ranges: dict[str, dict[str, dict[str, tuple[Ratio, Ratio]]]] = json.loads(text)
    return ranges


def priors_of(device: str, family: str, step_s: Seconds) -> dict[str, Prediction]:
    """The range that each lever is expected in, of new over old time; empty for kinds that nothing is known of.

    >>> priors_of("cpu", "products", 1e-4)["compile"].low > 1
    True
    """
    kinds = _measured().get(device, {})
    ranges = kinds.get("small" if family and step_s < SMALL_STEP_S else family, {})
    return {name: Prediction(low, high) for name, (low, high) in ranges.items()}


def with_priors(
    predicted: Mapping[str, Prediction], priors: Mapping[str, Prediction]
) -> dict[str, Prediction]:
    """What findings say of this program, and where they give no range what is known of others."""
    joined = dict(priors)
    for name, prediction in predicted.items():
        known = priors.get(name, Prediction())
        joined[name] = known._replace(rules=prediction.rules) if prediction.low is None else prediction
    return joined
