"""What a lever is expected to bring, by what a step is made of and what levers brought to other models on such machines.

A step is calls of operators, each of which costs Python and dispatch, and the arithmetic in them. A lever leaves a share of the
arithmetic, which depends on its kind and on the processor, and replaces the calls: what runs the whole model at once costs so many
calls in each step, and a change of precision so many in each product. Both are ranges in a file: shares span what was measured on a
convolutional network, an encoder, a decoder and a small policy, on processors with and without bfloat16; where bfloat16 was only
measured by autocast, the cast has its range.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import resources
from typing import TypeAlias

from pyrometer.quantity import Ratio, Seconds
from pyrometer.record import Record, from_json
from pyrometer.tuning.search.ordering import Prediction
from pyrometer.tuning.trials.composition import Composition

Range: TypeAlias = tuple[float, float]

MOST_IN_CALLS = 0.9
"""Of a step at most: even the smallest product computes something."""


class _Costs(Record, frozen=True, kw_only=True):
    """What a lever puts in the place of the calls of operators, in such calls."""

    step: Range = (0.0, 0.0)
    operator: Range = (1.0, 1.0)
    product: Range = (0.0, 0.0)


class _Tables(Record, frozen=True, kw_only=True):
    """What is known, by machine and kind of arithmetic, and by lever."""

    shares: dict[str, dict[str, dict[str, Range]]]
    calls: dict[str, _Costs]


@functools.cache
def _tables() -> _Tables:
    return from_json(_Tables, resources.files(__package__).joinpath("priors.json").read_bytes())


def priors_of(device: str, made_of: Composition, step_s: Seconds) -> dict[str, Prediction]:
    """The range that each lever is expected in, of new over old time; empty where nothing is known of the machine or the step.

    >>> few = Composition(num_calls=5, num_products=3, call_s=5e-6)
    >>> priors_of("cpu", few, 35e-6)["compile"].low > 1 > priors_of("cpu", few, 35e-3)["compile"].low
    True
    """
    kinds = _tables().shares.get(device, {})
    if not kinds or not made_of.num_products or step_s <= 0:
        return {}
    found = {}
    for name in {**kinds["convolutions"], **kinds["products"]}:
        low, high = (_ratio(name, kinds, made_of, step_s, end) for end in (0, 1))
        found[name] = Prediction(low, high)
    return found


def _ratio(
    name: str, kinds: dict[str, dict[str, Range]], made_of: Composition, step_s: Seconds, end: int
) -> Ratio:
    """One end of the range."""
    call = min(made_of.call_s / step_s, MOST_IN_CALLS / made_of.num_calls)
    costs, share = _tables().calls.get(name, _Costs()), made_of.convolution_share
    of_convolutions, of_products = (
        kinds[kind].get(name, (1.0, 1.0))[end] for kind in ("convolutions", "products")
    )
    left = share * of_convolutions + (1 - share) * of_products
    calls = (
        costs.step[end] + costs.operator[end] * made_of.num_calls + costs.product[end] * made_of.num_products
    )
    return call * calls + left * (1 - call * made_of.num_calls)


def with_priors(
    predicted: Mapping[str, Prediction], priors: Mapping[str, Prediction]
) -> dict[str, Prediction]:
    """What findings say of this program, within what is known of others where both can be true; else what findings say."""
    return {**priors, **{name: _within(each, priors.get(name)) for name, each in predicted.items()}}


def _within(found: Prediction, known: Prediction | None) -> Prediction:
    if known is None or known.low is None or known.high is None:
        return found
    if found.low is None or found.high is None:
        return known._replace(rules=found.rules)
    low, high = max(found.low, known.low), min(found.high, known.high)
    return Prediction(low, high, found.rules) if low <= high else found
