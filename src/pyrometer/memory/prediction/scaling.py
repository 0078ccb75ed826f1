"""How each category of memory grows with the batch and the sequence."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from pyrometer.memory.category import CATEGORIES, Category
from pyrometer.memory.prediction.growth import PEAK, POWERS, TIME_LIMIT_S, Growth, grow, terms_at
from pyrometer.memory.prediction.lifetimes import Integers
from pyrometer.memory.prediction.settings import OptimizerChoice, settings_of
from pyrometer.memory.prediction.sizes import Dims
from pyrometer.memory.profile import ScalingLaw
from pyrometer.quantity import Seconds, format_bytes
from pyrometer.workload.workload import Workload

UNITS = {
    "B": "per sample",
    "T": "per position",
    "B·T": "per token",
    "T²": "per pair of positions",
    "B·T²": "per sample and pair of positions",
}

REMEDIES: dict[str, str] = {
    "parameters": "weights in bfloat16, a smaller model, or sharded over devices (FSDP)",
    "gradients": "zero_grad(set_to_none=True), gradients in bfloat16, or sharded over devices",
    "optimizer": "an optimizer with less state: SGD, Adafactor, 8-bit AdamW; or sharded over devices",
    "master": "an optimizer that updates bfloat16 weights themselves, or sharded over devices",
    "activations": "checkpointing, a smaller micro-batch with accumulation, autocast to bfloat16",
    "inputs": "a smaller batch, narrower dtypes (uint8 images, int32 ids)",
    "temporaries": "fused operators and losses, in-place activations, fused or unrolled optimizers, a smaller micro-batch",
    "workspace": "other algorithms of the libraries, smaller operands",
    "cache": "expandable_segments, fewer different sizes",
    "unknown": "let go of tensors from before the step, such as kept outputs",
}

_NOTABLE = 0.005

TOLERANCE = 0.02
"""A law of totals that misses no size by more is as good as one with more terms."""

_EXACT = 1e-6


def scaling_laws(
    work: Workload,
    *,
    dims: Dims | None = None,
    dtype: torch.dtype | str | None = None,
    optimizer: OptimizerChoice | None = None,
    amp: torch.dtype | str | bool | None = None,
    device: torch.device | str | None = None,
    time_limit_s: Seconds = TIME_LIMIT_S,
) -> list[ScalingLaw]:
    """Say how each category grows, and the peak as it is composed now, from rehearsals at a few sizes.

    A category is taken at the instant at which it holds most. The law is exact where the program does the same at all
    sizes, since every allocation has coefficients of its own; otherwise totals are fitted by terms with coefficients of
    at least zero (Lawson and Hanson 1974): the fewest that miss no size by more than 2 %, and none that no allocation
    of the category has, where that is known. The worst error over all sizes that were rehearsed is told.

    Args:
        work: a training or an inference.
        dims: which dimensions of which inputs are batch and sequence, where that cannot be told.
        dtype: of parameters and inputs.
        optimizer: another optimizer.
        amp: dtype of autocast; `False` for none.
        device: `"cuda"` for CUDA's rules.
        time_limit_s: sequences that would be tried later are left out.

    Raises:
        InputError: the batch's dimension cannot be told.
        NotPredictableError: the program needs the values of tensors.
        UserProgramError: a step raised.

    >>> from torch import nn
    >>> import pyrometer as pm
    >>> laws = scaling_laws(pm.Inference(nn.Linear(256, 256), torch.randn(64, 256)))
    >>> [(law.category, law.law) for law in laws][:2]
    [('parameters', 'does not grow: 257 KiB'), ('inputs', 'grows with B: 1.00 KiB per sample')]
    """
    settings = settings_of(dims=dims, dtype=dtype, optimizer=optimizer, amp=amp, device=device)
    return laws_of(grow(work, settings, time_limit_s=time_limit_s))


def laws_of(growth: Growth) -> list[ScalingLaw]:
    """The laws of a growth, of every category that holds anything, and of the peak last."""
    present = growth.totals[0].nbytes
    laws = []
    for category in (*CATEGORIES, PEAK):
        if not present[category]:
            continue
        worst, coefficients = _simplest(growth, category, _candidates(growth, category))
        laws.append(
            ScalingLaw(
                category=category,
                law=in_words(coefficients, growth.batch, growth.totals[0].sequence),
                coefficients=coefficients,
                worst_error=worst,
                remedy=REMEDIES.get(category),
            )
        )
    return laws


def in_words(coefficients: Mapping[str, float], batch: int, sequence: int) -> str:
    """A law in words; terms that make no difference at the present size are left out.

    >>> in_words({"1": 4096.0, "B·T": 1024.0}, 8, 128)
    'grows with B·T: 1.00 KiB per token'
    """
    shares = {
        name: value * terms_at(batch, sequence, (name,))[0] for name, value in coefficients.items() if value
    }
    total = sum(map(abs, shares.values()))
    notable = [name for name, share in shares.items() if abs(share) >= _NOTABLE * total]
    growing = [name for name in notable if name != "1"]
    fixed = format_bytes(coefficients.get("1", 0.0))
    if not growing:
        return f"does not grow: {fixed}"
    growing.sort(key=lambda name: -abs(shares[name]))
    parts = [f"{name}: {format_bytes(coefficients[name])} {UNITS[name]}" for name in growing]
    return f"grows with {', and '.join(parts)}" + (f", beside {fixed}" if "1" in notable else "")


def _candidates(growth: Growth, category: str) -> list[dict[str, float]]:
    """Bytes per term, in several ways; the best of them is kept.

    What holds most at one size need not at another, so the instant is taken at several sizes.
    """
    lengths = {total.sequence for total in growth.totals}
    known = growth.even and (growth.sequence is not None or len(lengths) == 1)
    if not known:
        names = [name for name, (_, t) in POWERS.items() if t == 0 or len(lengths) > 1]
        chosen = (one for count in range(1, len(names) + 1) for one in itertools.combinations(names, count))
        return [_fitted(growth, category, one) for one in chosen]
    events = {_highest(growth, category, point.sizes): None for point in growth.points}
    return [
        *(_exact(growth, category, event) for event in events),
        _fitted(growth, category, _own_terms(growth, category)),
    ]


def _simplest(
    growth: Growth, category: str, candidates: Sequence[dict[str, float]]
) -> tuple[float, dict[str, float]]:
    """The law with its worst error: an exact one, else that with the fewest terms within the tolerance, else the best."""
    judged = [(_worst_error(growth, category, candidate), candidate) for candidate in candidates if candidate]
    best = min(judged, key=lambda one: one[0])
    within = [one for one in judged if one[0] <= TOLERANCE]
    if best[0] <= _EXACT or not within:
        return best
    return min(within, key=lambda one: (len(one[1]), one[0]))


def _own_terms(growth: Growth, category: str) -> tuple[str, ...]:
    """The terms that some allocation of a category has."""
    own = growth.lives.counted.copy()
    if category != PEAK:
        own &= growth.lives.categories == CATEGORIES.index(_category(category))
    present = np.any(growth.coefficients[own] != 0, axis=0)
    return tuple(name for name, has in zip(growth.names, present, strict=True) if has)


def _highest(growth: Growth, category: str, sizes: Integers) -> int:
    """The event after which a category holds most."""
    return int(np.argmax(growth.lives.levels(sizes, None if category == PEAK else _category(category))))


def _exact(growth: Growth, category: str, event: int) -> dict[str, float]:
    """The sum over what is alive after an event."""
    lives = growth.lives
    alive = lives.alive_after(event) & lives.counted
    if category != PEAK:
        alive &= lives.categories == CATEGORIES.index(_category(category))
    summed = growth.coefficients[alive].sum(axis=0)
    return {name: float(value) for name, value in zip(growth.names, summed, strict=True) if value}


def _fitted(growth: Growth, category: str, names: tuple[str, ...]) -> dict[str, float]:
    """Totals by terms with coefficients of at least zero."""
    first = growth.totals[0]
    scale = terms_at(first.batch, first.sequence, names)
    matrix = np.stack([terms_at(total.batch, total.sequence, names) / scale for total in growth.totals])
    wanted = np.array([float(total.nbytes[category]) for total in growth.totals])
    weights = 1 / np.maximum(wanted, 1.0)
    from scipy.optimize import nnls  # slow to import

    found, _ = nnls(matrix * weights[:, None], wanted * weights)
    return {name: float(v) for name, v in zip(names, found / scale, strict=True) if v > 0}


def _worst_error(growth: Growth, category: str, coefficients: Mapping[str, float]) -> float:
    """The largest relative miss over the sizes that were rehearsed and that the law speaks of."""
    misses = []
    names = tuple(coefficients)
    speaks = growth.sequence is not None or any(POWERS[name][1] for name in names)
    for total in growth.totals:
        if not speaks and total.sequence != growth.totals[0].sequence:
            continue
        found = float(np.dot(list(coefficients.values()), terms_at(total.batch, total.sequence, names)))
        misses.append(abs(found / total.nbytes[category] - 1) if total.nbytes[category] else 0.0)
    return round(max(misses), 9)


def _category(name: str) -> Category:
    return next(category for category in CATEGORIES if category == name)
