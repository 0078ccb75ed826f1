"""Fourier transforms have a length with a large prime factor.

## What it does
Reads the lengths of the Fourier transforms in a trace, and speaks where those with a prime factor of 17 or more take a good part of
the time.

## Why it costs
A fast transform splits its length into small factors. A prime length is computed through a convolution of at least twice the
length, or by definition: on a CPU core lengths with such a factor took two to fifteen times as long as the next product of 2, 3 and 5.

## Example
```python
size = len(signal) + len(kernel) - 1  # 5987, a prime
spectrum = torch.fft.rfft(signal, n=size) * torch.fft.rfft(kernel, n=size)
filtered = torch.fft.irfft(spectrum, n=size)
```

## Use instead
```python
size = len(signal) + len(kernel) - 1
fast = scipy.fft.next_fast_len(size, real=True)  # 6000
spectrum = torch.fft.rfft(signal, n=fast) * torch.fft.rfft(kernel, n=fast)
filtered = torch.fft.irfft(spectrum, n=fast)[:size]
```

## Fix safety
No fix is applied: for a linear convolution or a correlation zeros at the end change nothing but rounding. Where the spectrum
itself is the result, another length gives other frequencies.

## References
- SciPy, next_fast_len: https://docs.scipy.org/doc/scipy/reference/generated/scipy.fft.next_fast_len.html
- PyTorch, torch.fft.rfft: https://docs.pytorch.org/docs/stable/generated/torch.fft.rfft.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.quantity import format_percent
from pyrometer.rules.kernels.patterns.operators import (
    cost_of,
    index_of,
    place_of_point,
    shapes_of,
    span_share,
)
from pyrometer.rules.places import spoken
from pyrometer.rules.rule import Case, Findings, Limit, declare
from pyrometer.rules.untraced import untraced

if TYPE_CHECKING:
    from pyrometer.trace.reporting.totals import RoofPoint

RULE = declare(
    code="PYR520",
    severity="warning",
    fix_class="tolerance",
    limits=(
        Limit("min_share", 0.05, "of the time: another length saves half of it and more"),
        Limit("min_factor", 17, "libraries have code of their own for factors up to 13"),
        Limit("min_length", 64, "shorter transforms are mostly dispatch"),
    ),
)

FORWARD = frozenset({"aten::_fft_r2c", "aten::_fft_c2c"})
HALVED = "aten::_fft_c2r"
"""Its operand holds half of the frequencies and one."""


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """All such transforms together, at the one that takes the most."""
    trace = case.trace
    if trace is None:
        return
    points = [(point, length) for point in trace.roofline if (length := _awkward_length(case, point))]
    share = min(1.0, sum(span_share(trace, point) for point, _ in points))
    if not points or share < case.limit(RULE, "min_share"):
        return
    spent, length = max(points, key=lambda found: (found[0].op in FORWARD, found[0].time_ns))
    place, fast = place_of_point(case, spent), fast_length(length)
    yield RULE.finding(
        message=f"Fourier transforms of length {length:,}, which has the prime factor {largest_factor(length):,}, take "
        f"{format_percent(share)} of the time{spoken(place)}",
        where=place,
        evidence={"share": share, "lengths": sorted({n for _, n in points}), "next_fast_length": fast},
        links=[link for link in [index_of(trace, {spent.op or ""})] if link is not None],
        cost=cost_of(case, share, "time of these transforms in the trace"),
        gain=untraced(case, share).gain(
            "bound: transforms of the next product of 2, 3 and 5 took between a fifteenth and half of the time on one core",
            best=0.95,
            worst=0.5,
        ),
        confidence="high",
        advice=f"Choose a length such as {fast:,} (`scipy.fft.next_fast_len`) where it is free, as `n_fft` of `torch.stft` is; where they convolve or "
        f"correlate, pad to {fast:,} by `n=` in both directions, and cut the result.",
        resource=f"op:{spent.op}",
    )


def largest_factor(number: int) -> int:
    """The largest prime factor.

    >>> largest_factor(6000), largest_factor(5987), largest_factor(2 * 1499)
    (5, 5987, 1499)
    """
    divisor, largest = 2, 1
    while divisor * divisor <= number:
        while number % divisor == 0:
            number, largest = number // divisor, divisor
        divisor += 1
    return max(number, largest)


def fast_length(least: int) -> int:
    """The next product of 2, 3 and 5.

    >>> fast_length(5987), fast_length(64)
    (6000, 64)
    """
    return next(number for number in range(least, 2 * least + 1) if largest_factor(number) <= 5)


def _awkward_length(case: Case, point: RoofPoint) -> int | None:
    """The length along the last dimension, if it is awkward; of half a spectrum either length that it may stand for has to be."""
    shapes = shapes_of(point)
    if not shapes or point.op not in FORWARD | {HALVED}:
        return None
    last = shapes[0][-1]
    lengths = [2 * last - 2, 2 * last - 1] if point.op == HALVED else [last]
    awkward = [
        length
        for length in lengths
        if length >= case.limit(RULE, "min_length")
        and largest_factor(length) >= case.limit(RULE, "min_factor")
    ]
    return awkward[-1] if len(awkward) == len(lengths) else None
