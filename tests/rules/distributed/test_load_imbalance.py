from __future__ import annotations

import pytest


def test_the_rank_that_computes_most_is_found(findings, synthetic):
    (finding,) = findings("PYR608", synthetic(slow_us={1: 300, 3: 100}))
    assert finding.where.rank == 1
    mean = (300 * 4 + 400) / 4
    assert finding.evidence["compute_imbalance"] == pytest.approx(600 / mean, rel=0.15)
    assert "ranks do on average" in finding.message


def test_even_work_brings_what_is_predicted(findings, synthetic):
    """The mean on every rank: the busiest one is gone, and so is the finding."""
    assert findings("PYR608", synthetic(slow_us=dict.fromkeys(range(4), 100.0))) == []


def test_ranks_that_only_wait_for_data_are_balanced(findings, example_jobs):
    assert findings("PYR608", example_jobs["late"]) == []
    assert findings("PYR608", example_jobs["fixed"]) == []


def test_a_few_percent_are_silent(findings, synthetic):
    assert findings("PYR608", synthetic(slow_us={1: 20})) == []
