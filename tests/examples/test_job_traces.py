"""The job that the documentation looks at is what it says it is, and the tool finds what is known."""

from __future__ import annotations

import pytest

import pyrometer as pm

STEPS = 10


@pytest.fixture(scope="module")
def job(load_example, tmp_path_factory):
    example = load_example("job_traces.py")

    def written(**options):
        folder = tmp_path_factory.mktemp("ranks")
        return pm.read_trace(
            [rank.write(folder) for rank in example.simulate(**options)], cache=None, workers=1
        )

    return written


@pytest.fixture(scope="module")
def late(job):
    return job(fixed=False)


@pytest.fixture(scope="module")
def repaired(job):
    return job(fixed=True)


def test_the_files_are_whole_and_undamaged(late):
    assert [rank.rank for rank in late.ranks] == [0, 1, 2, 3]
    for rank in late.ranks:
        assert rank.info.repaired == []
        assert rank.steps.height == STEPS
        assert pm.analyze(rank, "health").confidence == "high"


def test_the_slow_loader_is_found_on_the_rank_that_has_it(late):
    found = pm.analyze(late, "ranks")
    assert [straggler.rank for straggler in found.stragglers] == [2]
    worst = found.stragglers[0]
    assert worst.persistence == 1
    assert "DataLoader" in worst.suspects[0].name
    assert found.num_mismatches == {}
    assert {clock.rank: clock.offset_ns for clock in found.clocks} == {
        0: 0,
        1: 2_600_000,
        2: -1_400_000,
        3: 800_000,
    }


def test_without_it_nobody_is_late_for_long(late, repaired):
    waited = [pm.analyze(trace, "ranks").wait_ns for trace in (late, repaired)]
    assert waited[1] < waited[0] / 10


def test_what_loading_costs_is_predicted(late, repaired):
    """Without any loading rank 2 would save at least what it saves when its loader is as fast as those of the others."""
    before, after = (one.rank(2).activity.span_ns for one in (late, repaired))
    gain = pm.analyze(late, "what_if", rank=2, change="data").gain_ns
    usual = (STEPS - 1) * 1_500_000 * 1.1
    assert before - after <= gain <= before - after + usual


def test_what_fixing_the_straggler_brings_is_predicted(late, repaired):
    """Its delays sum to more: reductions queue, and what waits behind the backward pass costs nothing."""
    worst = pm.analyze(late, "ranks").stragglers[0]
    brought = late.rank(0).activity.span_ns - repaired.rank(0).activity.span_ns
    assert worst.gain_ns == pytest.approx(brought, rel=0.02)
    assert worst.delay_ns > 1.3 * brought


def test_the_difference_is_the_loader(late, repaired):
    diff = pm.diff_traces(late.rank(2), repaired.rank(2))
    assert diff.outcome == "faster"
    largest = max(diff.parts, key=lambda part: abs(part.a_ns - part.b_ns))
    assert largest.name == "data"


def test_it_says_what_it_wrote(run_example):
    assert run_example("job_traces.py", "there").splitlines() == [f"there/rank{i}.json.gz" for i in range(4)]
