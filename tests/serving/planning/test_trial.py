"""A server gets some of the requests of a plan from a client here, before it is deployed."""

import json
import os
import subprocess
import sys
from collections import deque

import numpy as np
import pytest
import torch
from served import MODEL

from pyrometer.serving.batching.service_times import ServicePoint
from pyrometer.serving.http.tensors import decode_request, encode_request
from pyrometer.serving.planning.arrivals import Arrival
from pyrometer.serving.planning.trial import stretches
from pyrometer.serving.running.counting import LEAST_SAMPLES, Counting, _Ran
from pyrometer.serving.running.signature import TensorSpec


def test_a_short_course_is_tried_whole_and_from_its_beginning():
    course = [Arrival(at_s) for at_s in (3.0, 4.5, 5.0)]
    assert stretches(course, 5.0, 100) == [Arrival(0.0), Arrival(1.5), Arrival(2.0)]


def test_of_a_long_course_stretches_from_the_calmest_to_the_busiest_are_tried():
    course = [Arrival(second + place / (second + 1)) for second in range(60) for place in range(second + 1)]
    chosen = stretches(course, 5.0, 10_000)
    counts = np.bincount([int(one.at_s) for one in chosen])
    assert len(counts) == 5
    assert counts.min() == 1
    assert counts.max() == 60
    assert [one.at_s for one in chosen] == sorted(one.at_s for one in chosen)


def test_no_more_requests_are_tried_than_a_server_remembers():
    course = [Arrival(number * 1e-3) for number in range(20_000)]
    chosen = stretches(course, 5.0, 1000)
    assert len(chosen) == 1000
    assert chosen[-1].at_s < 1.1


@pytest.mark.parametrize("size", [3, 5000])
def test_what_the_client_sends_is_what_the_server_reads(size):
    spec = TensorSpec("x", torch.float32, (-1, size))
    array = np.arange(2 * size, dtype=np.float32).reshape(2, size)
    body, length = encode_request([(spec, array)])
    assert (length is None) == (size == 3)
    assert np.array_equal(decode_request(body, length, [spec]).arrays[0], array)


def test_sizes_that_ran_rarely_take_what_others_took_longer():
    """Batches of one row took 2 ms longer than the model alone; of eight rows one ran, and took 3 ms longer."""
    points = [ServicePoint(bucket="", rows=rows, samples_s=[1e-3 * rows] * 3) for rows in (1, 8, 16)]
    counting = Counting.__new__(Counting)
    counting.recent = deque()
    ran = [_Ran(float(at), ("", 1), 0.0, 3e-3, at > 0) for at in range(LEAST_SAMPLES)]
    counting._course = deque([*ran, _Ran(99.0, ("", 8), 1e-4, 11e-3, True)])
    found, paces = counting.service(points)
    medians = {point.rows: point.median_s for point in found}
    assert medians == pytest.approx({1: 3e-3, 8: 10e-3, 16: 18e-3})
    assert paces[-1].rank == pytest.approx(LEAST_SAMPLES / (LEAST_SAMPLES + 1))
    assert [pace.at_once for pace in paces] == [False, *[True] * LEAST_SAMPLES]
    assert len(counting.service(points, since_s=5.0)[1]) == LEAST_SAMPLES - 4


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """What `--plan` says of a real server, and the folder that it ran in."""
    folder = tmp_path_factory.mktemp("planned")
    (folder / "pyproject.toml").write_text(
        "[tool.pyrometer.serve]\nbudget = '50ms'\ncalibrate = '1s'\nbatch = 8\n[tool.pyrometer.monitor]\nfolder = 'seen'\n"
    )
    (folder / "model.py").write_text(MODEL.format(factor=2.0))
    command = [sys.executable, "-m", "pyrometer", "serve", "model.py:workload", "--plan", "poisson:100:4s"]
    said = subprocess.run(
        [*command, "--json"],
        cwd=folder,
        env={**os.environ, "PYROMETER_SERVE_TOKEN": "0123456789abcdef"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout)["plan"], folder


@pytest.mark.slow
def test_a_plan_has_the_server_answer_some_requests_and_says_so(planned):
    plan, _ = planned
    trial, own = plan["trial"], plan["policies"][0]
    assert 50 < trial["num_requests"] <= plan["num_requests"] / 2
    assert 0.5 < trial["span_s"] < 1.1
    assert 0 < trial["p50_s"]["value"] < trial["p99_s"]["value"]
    for share in ("p50_s", "p99_s"):
        assert own[share]["low"] <= own[share]["value"] <= own[share]["high"]
        assert own[share]["high"] / own[share]["value"] == pytest.approx(
            trial[share]["high"] / trial[share]["value"]
        )
    assert all(len(point["samples_s"]) <= 100 for point in plan["service"])


@pytest.mark.slow
def test_nobody_else_is_told_of_requests_that_nobody_sent(planned):
    assert sorted(path.name for path in planned[1].iterdir() if path.name != "__pycache__") == [
        "model.py",
        "pyproject.toml",
    ]
