"""What a lever is expected to bring, by what a step is made of and what levers brought to other models on such machines.

A step is calls of operators, each of which costs Python and dispatch; products of matrices and convolutions, as far as they run at the
rate of a large one; and the rest: what lies between products, and what small ones lose. A lever leaves a share of the products and
another one of the rest, both by their kind and the processor, and replaces the calls: what runs the whole model at once costs so many
calls in each step, and a change of precision so many in each product. Where products have few rows, converting weights in each step,
as autocast does, takes longer than what it saves. All of this are ranges in a file. Shares span what was measured on convolutional
networks, encoders, decoders, sets of points and small policies, on processors with and without bfloat16; of those without, casts were
only measured by autocast.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import resources
from typing import TypeAlias

from pyrometer.quantity import Ratio
from pyrometer.record import Record, from_json
from pyrometer.tuning.search.ordering import Prediction
from pyrometer.tuning.trials.composition import Composition

Range: TypeAlias = tuple[float, float]

MOST_IN_CALLS = 0.9
"""Of a step at most: even the smallest product computes something."""


class _Costs(Record, frozen=True, kw_only=True):
    """What a lever puts in the place of the calls of operators, in such calls; and times that weights are converted or laid out anew."""

    step: Range = (0.0, 0.0)
    operator: Range = (1.0, 1.0)
    product: Range = (0.0, 0.0)
    weights: Range = (0.0, 0.0)


class _Shares(Record, frozen=True, kw_only=True):
    """What a lever leaves of products that run at the rate of a large one, and of the rest of a step."""

    products: Range = (1.0, 1.0)
    rest: Range = (1.0, 1.0)


class _Tables(Record, frozen=True, kw_only=True):
    """What is known, by machine and kind of arithmetic, and by lever."""

    shares: dict[str, dict[str, dict[str, _Shares]]]
    calls: dict[str, _Costs]


@functools.cache
def _tables() -> _Tables:
    return from_json(_Tables, resources.files(__package__).joinpath("priors.json").read_bytes())


def priors_of(device: str, made_of: Composition) -> dict[str, Prediction]:
    """The range that each lever is expected in, of new over old time; empty where nothing is known of the machine or the step.

    >>> short, long = (Composition(num_calls=5, num_products=3, call_s=5e-6, step_s=s) for s in (35e-6, 35e-3))
    >>> priors_of("cpu", short)["compile"].high > 1 > priors_of("cpu", long)["compile"].high
    True
    """
    kinds = _tables().shares.get(device, {})
    if not kinds or not made_of.num_products or made_of.step_s <= 0:
        return {}
    found = {}
    for name in {**kinds["convolutions"], **kinds["products"]}:
        low, high = (_ratio(name, kinds, made_of, end) for end in (0, 1))
        found[name] = Prediction(low, high)
    return found


def _ratio(name: str, kinds: dict[str, dict[str, _Shares]], made_of: Composition, end: int) -> Ratio:
    """One end of the range."""
    call = min(made_of.call_s / made_of.step_s, MOST_IN_CALLS / made_of.num_calls)
    costs, in_calls = _tables().calls.get(name, _Costs()), call * made_of.num_calls
    large = min(made_of.least_share / (1 - in_calls), 1.0)

    def left_of(kind: str) -> Ratio:
        shares = kinds[kind].get(name, _Shares())
        return large * shares.products[end] + (1 - large) * shares.rest[end]

    convolved = made_of.convolution_share
    left = convolved * left_of("convolutions") + (1 - convolved) * left_of("products")
    calls = (
        costs.step[end] + costs.operator[end] * made_of.num_calls + costs.product[end] * made_of.num_products
    )
    weights = costs.weights[end] * made_of.weights_s / made_of.step_s
    return call * calls + left * (1 - in_calls) + weights


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
    return known._replace(low=low, high=high, rules=found.rules) if low <= high else found
