"""Verdicts on simulated machines: false alarms are rare whatever the noise, real effects are found."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import signal, stats

from pyrometer.bench.comparison.decision import THOROUGH_LOOKS, DecisionRule, decide
from pyrometer.bench.comparison.pairing import blocks_needed, drifts, hodges_lehmann
from pyrometer.errors import InputError

KINDS = ("independent", "autocorrelated", "bimodal", "drifting", "heavy_tailed", "alternating")
HARDEST = ("autocorrelated", "bimodal")
"""The kinds that procedures without our design get wrong; `make test-exhaustive` takes all."""
kinds = pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=[] if k in HARDEST else pytest.mark.exhaustive) for k in KINDS]
)


def series(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Log-noise around 0 with a spread of about 5 %."""
    white = rng.normal(0, 0.05, n)
    if kind == "autocorrelated":
        white[0] /= math.sqrt(1 - 0.9**2)
        return signal.lfilter([1], [1, -0.9], white)
    if kind == "bimodal":
        return white + np.where(rng.random(n) < 0.3, 0.4, 0.0)
    if kind == "drifting":
        return white + np.cumsum(rng.normal(0, 0.01, n))
    if kind == "heavy_tailed":
        return 0.03 * rng.standard_t(2, n)
    if kind == "alternating":
        return white + 0.2 * (np.arange(n) % 2)
    return white


def blocks_of(kind: str, n: int, effect: float, rng: np.random.Generator) -> np.ndarray:
    """Log ratios of n coin-flipped ABBA blocks on a simulated machine; B is exp(effect) times A."""
    noise = series(kind, 4 * n, rng)
    coin = random.Random(int(rng.integers(1 << 30)))
    first, second, third, fourth = noise.reshape(n, 4).T
    signs = np.array([1 if coin.random() < 0.5 else -1 for _ in range(n)])
    return signs * ((second + third) - (first + fourth)) / 2 + effect


def verdict_of(
    kind: str, effect: float, rng: np.random.Generator, rule: DecisionRule
) -> tuple[str, float, float]:
    log_ratios = blocks_of(kind, rule.looks[-1], effect, rng)
    for look in rule.looks:
        decision = decide(log_ratios[:look], rule)
        if decision.outcome:
            return decision.outcome, decision.low, decision.high
    return "undecided", decision.low, decision.high


@kinds
def test_identical_programs_are_never_told_apart(kind):
    rng = np.random.default_rng(5)
    outcomes = [verdict_of(kind, 0.0, rng, DecisionRule())[0] for _ in range(300)]
    wrong = sum(o in {"faster", "slower"} for o in outcomes)
    # One per cent nominal; five of 300 is three standard errors above the half per cent that the rule achieves.
    assert wrong <= 5, f"{wrong} of 300"


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "bimodal"])
def test_a_true_ten_percent_is_found(kind):
    rng = np.random.default_rng(6)
    outcomes = [verdict_of(kind, math.log(1.10), rng, DecisionRule())[0] for _ in range(60)]
    assert outcomes.count("slower") >= 57
    assert "faster" not in outcomes
    assert "same" not in outcomes


@kinds
@pytest.mark.parametrize(
    "effect", [0.03, *(pytest.param(e, marks=pytest.mark.exhaustive) for e in (0.0, 0.08))]
)
def test_the_interval_covers_the_true_ratio(kind, effect):
    rng = np.random.default_rng(9)
    hits = 0
    for _ in range(200):
        _, low, high = verdict_of(kind, effect, rng, DecisionRule())
        hits += low <= effect <= high
    assert hits / 200 >= 0.97


def test_an_effect_outside_the_margin_is_never_called_the_same():
    rng = np.random.default_rng(10)
    rule = DecisionRule(margin=0.01, looks=THOROUGH_LOOKS)
    outcomes = [verdict_of("independent", math.log(1.02), rng, rule)[0] for _ in range(60)]
    assert "same" not in outcomes


def test_fixed_alternation_resonates_where_mirrored_coin_flips_do_not():
    """The contrast that the design exists for: AB AB AB on a machine that alternates."""
    rng = np.random.default_rng(12)
    noise = series("alternating", 400, rng)
    naive = noise[1::2] - noise[0::2]
    assert hodges_lehmann(naive, 0.01)[1] > 0.1
    assert decide(blocks_of("alternating", 100, 0.0, rng), DecisionRule()).outcome != "slower"


def test_a_drifting_effect_is_not_decided():
    rng = np.random.default_rng(2)
    ramp = rng.normal(0, 0.01, 160) + np.linspace(0.0, 0.5, 160)
    decision = decide(ramp, DecisionRule())
    assert decision.drifting
    assert decision.outcome is None


def test_a_start_that_drifts_is_dropped_and_the_rest_decided():
    rng = np.random.default_rng(2)
    blocks = rng.normal(math.log(1.2), 0.01, 90)
    blocks[:20] += 0.5
    decision = decide(blocks, DecisionRule())
    assert decision.used == 60
    assert decision.outcome == "slower"
    assert math.exp(decision.estimate) == pytest.approx(1.2, rel=0.01)


def test_too_few_blocks_have_no_interval():
    decision = decide(np.array([0.5, 0.5, 0.5]), DecisionRule())
    assert decision.outcome is None
    assert math.isinf(decision.high)


@pytest.mark.parametrize(
    ("field", "value"), [("margin", 0.0), ("margin", 1.5), ("confidence", 0.3), ("confidence", 1.0)]
)
def test_a_rule_that_makes_no_sense_is_refused(field, value):
    with pytest.raises(InputError, match=f"{field}: got {value}"):
        DecisionRule(**{field: value})


def test_a_narrow_margin_lowers_the_smallest_effect():
    assert DecisionRule(margin=0.01).smallest_effect == pytest.approx(0.004)
    assert DecisionRule().smallest_effect == pytest.approx(0.02)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=60))
def test_swapping_the_sides_mirrors_the_decision(values):
    blocks = np.array(values)
    ahead, behind = decide(blocks, DecisionRule()), decide(-blocks, DecisionRule())
    assert ahead.estimate == pytest.approx(-behind.estimate, abs=1e-12)
    assert ahead.low == pytest.approx(-behind.high, abs=1e-12)
    mirror = {"slower": "faster", "faster": "slower"}
    assert behind.outcome == mirror.get(ahead.outcome, ahead.outcome)


def test_more_noise_needs_more_blocks():
    rng = np.random.default_rng(0)
    quiet, loud = rng.normal(0, 0.01, 40), rng.normal(0, 0.1, 40)
    assert blocks_needed(loud, 0.05) > 20 * blocks_needed(quiet, 0.05)
    assert not drifts(quiet, 0.02)


@pytest.mark.parametrize("num_blocks", [4, 8, 13, 25])
def test_the_interval_of_a_few_blocks_is_that_of_the_exact_distribution(num_blocks):
    """Every assignment of signs is as likely as any other: counted out, as scipy does it."""
    blocks = np.arange(1.0, num_blocks + 1)
    best = float(stats.wilcoxon(blocks, method="exact").pvalue)
    assert hodges_lehmann(blocks, best * 1.01)[1] == 1.0
    assert hodges_lehmann(blocks, best * 0.99)[1] == -math.inf


def test_large_gains_are_decided_by_eight_blocks():
    rule = DecisionRule(confidence=0.95, looks=(8, 12, 20, 40, 80), difference_share=1.0)
    rng = np.random.default_rng(3)
    assert decide(rng.normal(-0.5, 0.1, 8), rule).outcome == "faster"
    wrong = sum(decide(rng.normal(0.0, 0.2, 8), rule).outcome is not None for _ in range(400))
    assert wrong <= 400 * (rule.alpha_per_look + 0.02)


@pytest.mark.parametrize("num_looks", range(5))
def test_when_the_time_is_over_the_last_look_has_what_the_earlier_ones_did_not_spend(num_looks):
    rule = DecisionRule()
    # After the last planned look the time was over at the same blocks: nothing new is looked at.
    spent = min(num_looks, len(rule.looks) - 1) + rule.looks_left(num_looks)
    assert spent * rule.alpha_per_look == pytest.approx(0.01)


def test_the_last_look_decides_more_than_an_early_one():
    rng = np.random.default_rng(4)
    rule = DecisionRule()
    more = {"same": 0, "slower": 0}
    for effect in [0.0] * 60 + [0.05] * 60:
        blocks = rng.normal(effect, 0.04, 14)
        usual, last = decide(blocks, rule), decide(blocks, rule, rule.looks_left(0))
        assert usual.outcome in {None, last.outcome}
        if usual.outcome is None and last.outcome:
            more[last.outcome] += 1
    assert min(more.values()) > 3


@kinds
def test_few_blocks_of_noise_are_told_apart_in_less_than_half_a_per_cent(kind):
    """Where the noise exceeds the smallest effect, only the error probability keeps claims rare."""
    rng = np.random.default_rng(8)
    rule = DecisionRule()
    wrong = 0
    for _ in range(400):
        blocks = 3 * blocks_of(kind, 18, 0.0, rng)
        wrong += decide(blocks, rule, rule.looks_left(0)).outcome in {"faster", "slower"}
    # Two fifths of one per cent nominal; five is three standard errors above.
    assert wrong <= 5, f"{wrong} of 400"


def test_a_claim_of_a_difference_needs_more_than_one_of_sameness():
    rule = DecisionRule()
    rng = np.random.default_rng(11)
    blocks = rng.normal(0.05, 0.05, 20)
    apart = hodges_lehmann(blocks, rule.alpha_per_look * rule.difference_share)
    assert decide(blocks, rule).low == apart[1] < hodges_lehmann(blocks, rule.alpha_per_look)[1]
