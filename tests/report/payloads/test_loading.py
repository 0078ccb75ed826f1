"""The picture of how data arrives: who does what, what matters most, and what would help."""

from __future__ import annotations

from typing import Any

import pytest
from document_fixtures import changed

from pyrometer.advice import Advice, Gain
from pyrometer.loading.report import LoaderReport, StageTime
from pyrometer.loading.settings import LoaderSettings
from pyrometer.record import from_json
from pyrometer.report.attachments import Attachments
from pyrometer.report.documents import BenchDocument
from pyrometer.report.payloads.loading import (
    NO_CURVE,
    NO_MAKING,
    NO_QUEUE_SERIES,
    LoadingView,
    blocks,
    loading_view,
)


def stage(name: str, where: str, per_step_s: float, step_s: float = 0.05) -> StageTime:
    return StageTime(name=name, where=where, per_step_s=per_step_s, share=per_step_s / step_s)  # type: ignore[arg-type]


def make_report(**changes: Any) -> LoaderReport:
    values: dict[str, Any] = {
        "verdict": "starved-steady",
        "sentence": "the step waits",
        "settings": LoaderSettings(num_workers=4, prefetch_factor=2),
        "measured_step_s": 0.05,
        "predicted_step_s": 0.048,
        "data_share": 0.6,
        "wait_s": 0.03,
        "wait_fraction": 0.6,
        "first_batch_s": 0.2,
        "free_data_ratio": 0.4,
        "stages": [
            stage("fetch", "worker", 0.02),
            stage("decode", "worker", 0.16),
            stage("collate", "worker", 0.01),
            stage("wait", "main", 0.028),
            stage("receive", "main", 0.002),
            stage("h2d", "device", 0.004),
            stage("forward", "device", 0.016),
        ],
        "occupancy": 0.05,
        "queue_batches": 8,
        "epoch_batches": 101,
    }
    return LoaderReport(**{**values, **changes})


def marked(view: LoadingView) -> dict[str, str]:
    return {station.name: station.mark for lane in view.lanes for station in lane.stations if station.mark}


def test_lanes_are_processes_and_workers_divide_their_time():
    view = loading_view(make_report())
    assert [(lane.title, lane.count) for lane in view.lanes] == [
        ("4 workers", 4), ("training process", 1), ("device", 1),
    ]  # fmt: skip
    assert view.lanes[0].total_s == pytest.approx(0.19)
    assert view.lanes[0].pace_s == pytest.approx(0.19 / 4)
    assert [station.doing for station in view.lanes[1].stations] == ["waiting", "handing over"]


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        ("starved-steady", {"decode": "the step waits for this"}),
        ("handover-bound", {"receive": "the step waits for this"}),
        ("bursty", {"wait": "batches come unevenly"}),
        ("serial", {"decode": "the longest part of loading"}),
        ("healthy", {}),
        ("balanced", {}),
        ("slow-start", {}),
    ],
)
def test_the_station_that_matters_most_follows_from_the_verdict(verdict: str, expected: dict[str, str]):
    view = loading_view(make_report(verdict=verdict))
    assert marked(view) == expected
    assert view.good == (verdict in {"healthy", "balanced"})


def test_what_holds_the_step_back_is_said_in_words():
    assert loading_view(make_report()).bottleneck == (
        "decode takes 160 ms per step in each worker: the step waits for this"
    )
    assert "start of the workers: 200 ms" in loading_view(make_report(verdict="slow-start")).bottleneck
    assert "cannot be told" in loading_view(make_report(stages=[])).bottleneck


def test_the_slowest_part_sets_the_pace():
    paces = loading_view(make_report()).paces
    assert [(pace.kind, pace.slowest) for pace in paces] == [
        ("part", True), ("part", False), ("predicted", False), ("measured", False),
    ]  # fmt: skip
    assert [pace.step_s for pace in paces] == pytest.approx([0.0475, 0.02, 0.048, 0.05])


def test_without_workers_the_parts_take_turns_and_none_sets_the_pace():
    alone = make_report(verdict="serial", settings=LoaderSettings(), stages=[stage("decode", "main", 0.02)])
    assert loading_view(alone).paces == []


def advice(title: str, saves_s: float | None) -> Advice:
    gain = None if saves_s is None else Gain(saves_s=saves_s, method="model")
    return Advice(slug="s", title=title, why="w", fix_class="exact", gain=gain)


def test_no_advice_brings_more_than_data_that_costs_nothing():
    rows = loading_view(
        make_report(advice=[advice("more", 0.01), advice("silent", None), advice("too good", 0.049)])
    ).prospects
    assert [row.label for row in rows] == ["as it is", "more", "too good", "with free data"]
    assert [row.step_s for row in rows] == pytest.approx([0.05, 0.04, 0.02, 0.02])
    assert [row.ratio for row in rows] == pytest.approx([1, 0.8, 0.4, 0.4])


def test_an_epoch_has_its_start_once():
    epoch = loading_view(make_report()).epoch
    assert epoch is not None
    assert (epoch.start_s, epoch.data_s, epoch.work_s) == pytest.approx((0.2, 3.0, 2.02))
    assert loading_view(make_report(epoch_batches=None)).epoch is None


def test_little_data_is_shown_and_what_is_missing_told():
    view = loading_view(
        make_report(
            verdict="no-loader", settings=LoaderSettings(), stages=[stage("wait", "main", 0.0)], occupancy=None,
            queue_batches=0, predicted_step_s=None, measured_step_s=0.0, epoch_batches=None,
        )
    )  # fmt: skip
    assert view.queue is None
    assert view.missing == [NO_MAKING]
    assert view.prospects == []
    assert loading_view(make_report()).missing == [NO_QUEUE_SERIES, NO_CURVE]


def test_a_queue_whose_filling_is_not_known_says_so():
    queue = loading_view(make_report(occupancy=None)).queue
    assert queue is not None
    assert queue.said == "room for 8 batches; how full it was is not known"


def test_blocks_follow_from_the_document(documents):
    bench = next(document for document in documents.values() if isinstance(document, BenchDocument))
    assert list(blocks(changed(bench, loading=None), Attachments())) == []
    made = list(blocks(changed(bench, loading=make_report()), Attachments()))
    assert [block.name for block in made] == ["loading/0"]
    assert from_json(LoadingView, made[0].content) == loading_view(make_report())


def test_without_workers_the_stations_add_up_to_the_step():
    """Getting a batch takes more than making it; the remainder has a station of its own."""
    times = [stage("decode", "main", 0.02), stage("collate", "main", 0.002), stage("forward", "main", 0.02)]
    serial = {"verdict": "serial", "settings": LoaderSettings(), "occupancy": None, "queue_batches": 0}
    [lane] = loading_view(make_report(stages=times, **serial)).lanes
    assert [station.name for station in lane.stations] == ["decode", "collate", "other loading", "forward"]
    assert lane.total_s == pytest.approx(0.05)
