from __future__ import annotations

import pytest

from pyrometer.rules.distributed.pipeline_bubbles import micro_batches_for


@pytest.fixture(scope="module")
def gpipe(load, trace_tests, tmp_path_factory):
    """`gpipe(stages, batches)`: evidence of an even pipeline."""
    pipelines = load("tests/trace/jobs/test_pipeline.py")

    def make(stages, batches):
        from pyrometer.rules.case import Case
        from pyrometer.trace.jobs.merge import read_job

        folder = tmp_path_factory.mktemp("gpipe")
        paths = pipelines.gpipe(folder, trace_tests.TraceBuilder, stages, batches, 3)
        return Case(target="test", job=read_job(paths, workers=1))

    return make


def test_too_few_micro_batches_are_found(findings, gpipe):
    (finding,) = findings("PYR609", gpipe(4, 4))
    assert finding.cost.share == pytest.approx(3 / 7)
    assert "the stages stand still 42.9 % of a step" in finding.message
    assert "27 micro-batches instead of 4" in finding.advice.text
    assert finding.where.rank is None  # no stage is slower than the others


def test_the_advice_brings_what_is_predicted(findings, gpipe):
    before, after = gpipe(4, 4), gpipe(4, 27)
    (finding,) = findings("PYR609", before)
    assert findings("PYR609", after) == []
    old, new = (one.job.pipelines[0] for one in (before, after))
    per_micro_batch = (new.step_ns / new.num_microbatches) / (old.step_ns / old.num_microbatches)
    assert finding.advice.gain.ratio_low == pytest.approx(per_micro_batch, rel=0.02)


def test_the_wanted_number_reaches_the_wanted_bubble():
    for stages in (2, 4, 8):
        wanted = micro_batches_for(0.1, stages)
        assert (stages - 1) / (wanted + stages - 1) <= 0.1 < (stages - 1) / (wanted - 1 + stages - 1)


def test_enough_micro_batches_are_silent(findings, gpipe):
    assert findings("PYR609", gpipe(2, 8)) == []


def test_data_parallel_jobs_are_silent(findings, synthetic):
    assert findings("PYR609", synthetic()) == []
