"""Files of traces alone lead to the rules about ranks, by the way that `pyrometer trace` goes."""

from __future__ import annotations

import json

import pytest

from pyrometer.cli.main import main
from pyrometer.evidence.of_trace import evidence_of_trace
from pyrometer.rules.explain import explain
from pyrometer.trace.jobs.executor import SerialExecutor
from pyrometer.trace.reporting.job_report import report_files

LARGE, SMALL = 64 << 20, 8 << 20


@pytest.fixture
def files(load, jobs, trace_tests, tmp_path):
    """Files of each job, by what is wrong with it."""

    def synthetic(**options):
        return jobs.SyntheticJob(tmp_path, trace_tests.TraceBuilder, **options).write()

    def pipeline(batches):
        write = load("tests/trace/jobs/test_pipeline.py").gpipe
        return write(tmp_path, trace_tests.TraceBuilder, 4, batches, 3)

    elements = {(rank, step): SMALL if step else LARGE for rank in range(4) for step in range(5)}
    return {
        "a late rank": lambda: synthetic(loading_us={2: 800}),
        "uneven work": lambda: synthetic(slow_us={1: 300, 3: 100}),
        "slow collectives": lambda: synthetic(elements=elements),
        "few micro-batches": lambda: pipeline(4),
        "nothing": synthetic,
    }


@pytest.mark.parametrize(
    ("wrong", "codes"),
    [
        ("a late rank", {"PYR607"}),
        ("uneven work", {"PYR607", "PYR608"}),
        ("slow collectives", {"PYR610"}),
        ("few micro-batches", {"PYR609"}),
        ("nothing", set()),
    ],
)
def test_what_is_wrong_with_a_job_is_found_in_its_files(files, wrong, codes):
    diagnosis = explain(evidence_of_trace("ranks", report_files(files[wrong](), executor=SerialExecutor())))
    about_ranks = {"PYR607", "PYR608", "PYR609", "PYR610"}
    assert {finding.code for finding in diagnosis.findings} & about_ranks == codes
    assert diagnosis.notes == []


def test_one_file_with_many_small_reductions_leads_with_them(reducing, builder, capfd):
    reducing(calls=40, elements=None, each_us=10, between_us=30)
    assert main(["trace", str(builder.write()), "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    codes = [finding["code"] for finding in document["diagnosis"]["findings"]]
    assert codes[0] == "PYR602"
    assert "PYR601" not in codes  # nothing computes that these could be hidden behind
    first = document["diagnosis"]["findings"][0]
    assert "DistributedDataParallel" in first["advice"]["sketch"]
    sentence = document["evidence"]["trace_verdict"]["sentence"]
    assert "400 µs of communication per step in 40 collectives, all of it in the open" in sentence
