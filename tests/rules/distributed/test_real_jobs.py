"""Real jobs of two processes on the CPU: each fault is found in the one that has it, and in no other."""

from __future__ import annotations

import pytest
from record_programs import observed_job

from pyrometer.rules.case import case_of
from recorded import JOBS, evidence_of

every_job = pytest.mark.parametrize("kind", JOBS)


@every_job
def test_reductions_of_every_micro_batch_are_found(findings, kind):
    found = findings("PYR603", case_of(evidence_of("job", kind)))
    assert bool(found) is (kind == "every")
    if found:
        assert found[0].evidence["times"] == pytest.approx(4.0, rel=0.05)


def assert_late_rank_is_found(findings, evidence):
    (finding,) = findings("PYR607", case_of(evidence))
    assert finding.where.rank == 1
    assert finding.cost.share > 0.5
    assert findings("PYR601", case_of(evidence)) == []  # all of it is waiting


def test_the_rank_that_sleeps_is_found(findings):
    assert_late_rank_is_found(findings, evidence_of("job", "late"))


@pytest.mark.exhaustive
def test_so_it_is_in_a_job_that_is_observed_anew(findings, tmp_path):
    assert_late_rank_is_found(findings, observed_job("late", tmp_path))
