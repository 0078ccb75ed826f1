"""The textbook statistics that readers expect beside a verdict. They are never used for one.

Two runs of one program on a shared machine differ "significantly" by these tests in up to three of four cases, because
they take neighbouring samples for independent and the machine for constant.
"""

from __future__ import annotations

import math

from pyrometer.bench.autocorrelation import Floats
from pyrometer.bench.comparison.verdict import ReferenceTests

COHEN_WORDS = ((0.2, "negligible"), (0.5, "small"), (0.8, "medium"), (math.inf, "large"))


def cohen_d(baseline: Floats, candidate: Floats) -> float:
    """Cohen's d: difference of the means over the pooled standard deviation; positive when the candidate is larger.

    >>> import numpy as np
    >>> cohen_d(np.array([1.0, 2.0, 3.0]), np.array([2.0, 3.0, 4.0]))
    1.0
    """
    n, m = len(baseline), len(candidate)
    pooled = ((n - 1) * baseline.var(ddof=1) + (m - 1) * candidate.var(ddof=1)) / (n + m - 2)
    difference = float(candidate.mean() - baseline.mean())
    if pooled > 0:
        return difference / math.sqrt(pooled)
    return math.copysign(math.inf, difference) * (difference != 0)


def cohen_word(d: float) -> str:
    """The usual word for an effect size: negligible below 0.2, small to 0.5, medium to 0.8, then large.

    >>> cohen_word(-0.6)
    'medium'
    """
    return next(word for limit, word in COHEN_WORDS if abs(d) < limit or limit == math.inf)


def reference_tests(baseline: Floats, candidate: Floats) -> ReferenceTests:
    """Welch's t, Cohen's d and Mann-Whitney on two plain series of times; none of them where a series is constant."""
    constant = any(times.std() < 1e-9 * times.mean() for times in (baseline, candidate))
    if min(len(baseline), len(candidate)) < 2 or constant:
        return ReferenceTests(welch_t=None, welch_p=None, cohen_d=None, cohen_size=None, mann_whitney_p=None)
    from scipy import stats  # slow to import

    welch = stats.ttest_ind(candidate, baseline, equal_var=False)
    d = cohen_d(baseline, candidate)
    return ReferenceTests(
        welch_t=float(welch.statistic),
        welch_p=float(welch.pvalue),
        cohen_d=d if math.isfinite(d) else None,
        cohen_size=cohen_word(d),
        mann_whitney_p=float(stats.mannwhitneyu(baseline, candidate).pvalue),
    )
