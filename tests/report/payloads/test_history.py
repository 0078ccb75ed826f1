"""Earlier runs as a series, and where they changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from document_fixtures import changed

from pyrometer.record import to_dict
from pyrometer.report.attachments import Attachments, PastRun
from pyrometer.report.history import past_runs
from pyrometer.report.payloads.history import blocks, history_view
from pyrometer.store.run import Run, new_run

START = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.fixture
def make_run(documents):
    """A stored run with a median and its interval of ±1 %."""

    def make(number: int, median_s: float, *, fingerprint: str = "a", half: float = 0.01, **changes) -> Run:
        m = documents["steady"].evidence.measurement
        low, high = median_s * (1 - half), median_s * (1 + half)
        middle = msgspec.structs.replace(m.quantiles[0], value_s=median_s, low_s=low, high_s=high)
        m = msgspec.structs.replace(
            m,
            median_s=median_s,
            ci_low_s=low,
            ci_high_s=high,
            quantiles=[middle, *m.quantiles[1:]],
            **changes,
        )
        run = new_run(
            "bench", "model.py:work", {"evidence": {"measurement": to_dict(m)}}, environment={"fingerprint": fingerprint}, command=[],
            commit=(f"{number:040x}", False), now=START + timedelta(days=number),
        )  # fmt: skip
        return msgspec.structs.replace(run, number=number + 1)

    return make


def test_changes_are_marked_where_intervals_lie_apart(make_run):
    runs = [make_run(i, median) for i, median in enumerate([0.1, 0.101, 0.12, 0.119, 0.08])]
    found = past_runs([runs[3], runs[0], runs[4], runs[1], runs[2]])
    assert [run.run_id for run in found] == [run.id for run in runs]
    assert [run.change for run in found] == [None, None, "slower", None, "faster"]
    assert found[2].low_s == pytest.approx(0.12 * 0.99)
    assert found[2].commit_sha == runs[2].commit_sha


def test_runs_of_one_commit_with_caveats_are_called_neither_slower_nor_faster(make_run):
    def of_one_commit(*, steady: bool) -> list[Run]:
        runs = [make_run(i, median, steady=steady, warnings=[]) for i, median in enumerate([0.1, 0.2, 0.1])]
        return [msgspec.structs.replace(run, commit_sha="c" * 40) for run in runs]

    assert [run.change for run in past_runs(of_one_commit(steady=False))] == [None, None, None]
    assert [run.change for run in past_runs(of_one_commit(steady=True))] == [None, "slower", "faster"]


def test_intervals_that_touch_are_no_change(make_run):
    assert [run.change for run in past_runs([make_run(0, 0.1), make_run(1, 0.1019)])] == [None, None]


def test_only_runs_that_can_be_compared_with_the_newest_are_kept(make_run):
    runs = [
        make_run(0, 0.1),
        make_run(1, 0.3, fingerprint="another machine"),
        make_run(2, 0.3, config="mode=default"),
        make_run(3, 0.3, units_per_step=64.0),
        make_run(4, 0.1),
    ]
    empty = msgspec.structs.replace(make_run(5, 0.1), document={"verdict": None})
    damaged = msgspec.structs.replace(make_run(6, 0.1), document={"evidence": {"measurement": {"name": 3}}})
    found = past_runs([*runs, empty, damaged])
    assert [run.run_id for run in found] == [runs[0].id, runs[4].id]
    assert past_runs([empty]) == past_runs([]) == []


def test_nothing_is_concluded_where_machines_are_unknown_or_medians_have_no_interval(make_run):
    unknown = [make_run(0, 0.1, fingerprint=""), make_run(1, 0.2, fingerprint="")]
    assert [run.change for run in past_runs(unknown)] == [None, None]
    m = unknown[0].document["evidence"]["measurement"]
    bare = {**m, "quantiles": [{**quantile, "low_s": None, "high_s": None} for quantile in m["quantiles"]]}
    runs = [
        make_run(0, 0.1),
        msgspec.structs.replace(make_run(1, 0.1), document={"evidence": {"measurement": bare}}),
        make_run(2, 0.2),
    ]
    found = past_runs(runs)
    assert [run.change for run in found] == [None, None, None]
    assert found[1].low_s is None


def test_view_knows_the_page_s_own_run_and_its_deadline(documents):
    document = documents["steady"]
    runs = [
        PastRun(run_id=name, created="2026-11-01T00:00:00Z", median_s=0.03, low_s=0.029, high_s=0.031)
        for name in ("a", "r7k2m9")
    ]
    view = history_view(runs, document)
    assert view.own == 1
    assert view.deadline_s == document.evidence.measurement.deadline_s
    assert view.axis.low < 0.029
    assert view.axis.high > 0.0333
    far = changed(
        document, measurement=msgspec.structs.replace(document.evidence.measurement, deadline_s=9.0)
    )
    assert history_view(runs, far).axis.high < 1


def test_one_run_is_no_history(documents):
    run = PastRun(run_id="a", created="2026-11-01T00:00:00Z", median_s=0.03)
    assert list(blocks(documents["steady"], Attachments(history=[run]))) == []
    assert [block.name for block in blocks(documents["steady"], Attachments(history=[run, run]))] == [
        "history"
    ]
