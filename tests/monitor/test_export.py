"""Every way out tells the same figures, and the programs that read them agree."""

from __future__ import annotations

import gzip
import http.server
import json
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import pytest
import torch
from prometheus_client.parser import text_string_to_metric_families
from services import get, get_json, until

from pyrometer.errors import InputError, UsageError
from pyrometer.histogram import Histogram
from pyrometer.monitor.export.processes import ENDED, SharedTotals
from pyrometer.monitor.export.prometheus import BOUNDS, PrometheusText
from pyrometer.monitor.totals import Totals


def infer(x=1):
    return x


def metrics_of(monitor):
    text = get(f"http://127.0.0.1:{monitor.port}/metrics")
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_prometheus_own_parser_reads_the_page(make):
    monitor = make(model='a "model"', port=0, labels={"route": "7\\8"}, sample_every=1).start()
    watched = monitor.watch(infer)
    for _ in range(10):
        watched(torch.tensor([1.0, -2.0]))
    monitor.counter("detections", "what\nwas seen", ["class"]).add(3, 'a "car"\n')
    monitor.gauge("temperature").set(float("nan"))
    monitor.histogram("decision_seconds").record(0.5)
    monitor.flush()
    found = metrics_of(monitor)
    common = (("model", 'a "model"'), ("route", "7\\8"))
    call = ("call", "infer")
    assert found[("pyrometer_requests_total", call, *common)] == 10
    assert found[("pyrometer_detections_total", ("class", 'a "car"\n'), *common)] == 3
    assert found[("pyrometer_decision_seconds_count", *common)] == 1
    assert found[("pyrometer_decision_seconds_bucket", ("le", "0.353553391"), *common)] == 0
    assert found[("pyrometer_decision_seconds_bucket", ("le", "0.5"), *common)] == 1
    assert found[("pyrometer_up", *common)] == 1
    assert found[("pyrometer_output_largest", call, *common)] == 1.0
    value = found[("pyrometer_temperature", *common)]
    assert value != value  # noqa: PLR0124 - NaN


def test_buckets_rise_and_end_at_the_count():
    values = [0.0, 1e-6, 1e-3, 0.5, 7.0, 1e3]
    totals = Totals(histograms={"latency": Histogram.of(values)})
    text = PrometheusText().render(totals, {}).decode()
    (family,) = text_string_to_metric_families(text)
    counts = [sample.value for sample in family.samples if sample.name.endswith("_bucket")]
    assert counts == sorted(counts)
    assert (len(counts), counts[-1]) == (len(BOUNDS) + 1, len(values))


def test_what_did_not_change_keeps_its_text_and_what_did_does_not():
    text = PrometheusText()
    first, second = Histogram.of([1.0]), Histogram.of([1.0, 2.0])
    same = text.render(Totals(histograms={"a": first}), {})
    assert text.render(Totals(histograms={"a": first}), {}) == same
    assert b"pyrometer_a_count 2" in text.render(Totals(histograms={"a": second}), {})
    assert text.render(Totals(), {}) == b""


def test_snapshot_and_health_are_served(make):
    monitor = make(port=0).start()
    monitor.watch(infer)()
    url = f"http://127.0.0.1:{monitor.port}"
    assert get_json(f"{url}/snapshot")["requests"] == 1
    assert get(f"{url}/healthz") == "ok\n"
    with pytest.raises(OSError, match="404"):
        get(f"{url}/other")


WORKER = """
import sys, pyrometer as pm
monitor = pm.Monitor("m", folder="", tick_s=3600, processes=sys.argv[1])
@monitor.watch
def infer(x=1): return x
for _ in range(int(sys.argv[2])): infer()
monitor.flush()
print("written", flush=True)
sys.stdin.read()
"""


def test_metrics_that_other_machines_can_reach_need_the_token(make, monkeypatch):
    with pytest.raises(
        UsageError, match=r"monitor: address 0\.0\.0\.0: other machines .* PYROMETER_MONITOR_TOKEN"
    ):
        make(port=0, address="0.0.0.0")
    monkeypatch.setenv("PYROMETER_MONITOR_TOKEN", "0123456789abcdef")
    url = f"http://127.0.0.1:{make(port=0, address='0.0.0.0').start().port}"
    with pytest.raises(urllib.error.HTTPError, match="401"):
        get(f"{url}/metrics")
    request = urllib.request.Request(f"{url}/metrics", headers={"Authorization": "Bearer 0123456789abcdef"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert b"pyrometer_up" in answer.read()
    assert get(f"{url}/healthz") == "ok\n"


def test_one_process_tells_of_all_and_sums_never_fall(make, tmp_path):
    folder = tmp_path / "shared"
    parent = make(model="m", port=0, processes=str(folder)).start()
    parent.watch(infer)()
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(folder), str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for count in (10, 100)
    ]
    try:
        for worker in workers:
            assert worker.stdout.readline() == "written\n"
        requests = ("pyrometer_requests_total", ("call", "infer"), ("model", "m"))
        parent.flush()
        found = metrics_of(parent)
        assert found[requests] == 111
        assert len([key for key in found if key[0] == "pyrometer_up"]) == 3
        workers[0].kill()
        workers[0].wait()
        parent.flush()
        found = metrics_of(parent)
        assert found[requests] == 111
        assert len([key for key in found if key[0] == "pyrometer_up"]) == 2
        assert sorted(file.name for file in folder.glob("*.json")) == sorted(
            [ENDED, f"{workers[1].pid}.json", f"{os.getpid()}.json"]
        )
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()


def test_a_damaged_file_of_a_process_is_left_out(tmp_path):
    (tmp_path / f"{os.getpid()}.json").write_text('{"counters": {"a"')
    assert SharedTotals(tmp_path).read() == Totals()


def test_another_takes_the_port_when_its_holder_ends(make, tmp_path):
    shared = str(tmp_path / "shared")
    first = make(port=0, processes=shared).start()
    second = make(port=first.port, processes=shared).start()
    assert second.port is None
    port = first.port
    first.close()
    second.flush()
    assert second.port == port


def test_lines_are_rotated_and_bounded(make, tmp_path):
    folder = tmp_path / "lines"
    monitor = make(folder=str(folder), file_bytes=4000, num_files=3, sample_every=1, model="m", version="2")
    watched = monitor.watch(infer)
    for _ in range(60):
        watched(torch.zeros(2, 3))
        assert monitor.flush(30)
    files = sorted(file.name for file in folder.glob("ticks-*"))
    assert [name.partition(".")[2] for name in files] == ["jsonl", "jsonl.1", "jsonl.2"]
    assert all(file.stat().st_size <= 4000 for file in folder.glob("ticks-*"))
    (calls,) = folder.glob("calls-*.jsonl")
    line = json.loads(calls.read_text().splitlines()[-1])
    assert line["timestamp"].endswith("Z")
    assert {key: line[key] for key in ("event", "call", "model", "version", "shape", "batch")} == {
        "event": "sample", "call": "infer", "model": "m", "version": "2", "shape": "2x3", "batch": 2,
    }  # fmt: skip


def test_an_error_is_told_in_full(make, tmp_path):
    monitor = make(folder=str(tmp_path))

    @monitor.watch
    def fail(x):
        raise KeyError(x)

    with pytest.raises(KeyError):
        fail(torch.zeros(4))
    assert monitor.flush(30)
    (calls,) = tmp_path.glob("calls-*.jsonl")
    line = json.loads(calls.read_text())
    assert (line["event"], line["error"], line["shape"]) == ("error", "KeyError", "4")


class Receiver(http.server.BaseHTTPRequestHandler):
    """Keeps what is posted."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.append(gzip.decompress(body) if self.headers.get("Content-Encoding") else body)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args):
        """Nobody reads it."""


def test_opentelemetry_gets_histograms_of_scale_five(make):
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    server.bodies = []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        monitor = make(model="m", version="2", otlp=f"http://127.0.0.1:{server.server_address[1]}/v1/metrics")
        monitor.histogram("decision_seconds").record(0.5)
        monitor.counter("detections", labels=["class"]).add(4, "car")
        assert monitor.flush(30)
        monitor.counter("detections", labels=["class"]).add(1, "car")
        assert monitor.flush(30)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    sent = ExportMetricsServiceRequest.FromString(server.bodies[-1])
    (resource,) = sent.resource_metrics
    names = {one.key: one.value.string_value for one in resource.resource.attributes}
    assert (names["service.name"], names["service.version"]) == ("m", "2")
    metrics = {metric.name: metric for metric in resource.scope_metrics[0].metrics}
    (point,) = metrics["pyrometer_decision_seconds"].exponential_histogram.data_points
    assert (point.scale, point.count, point.sum) == (5, 1, 0.5)
    assert (point.positive.offset, list(point.positive.bucket_counts)) == (-33, [1])
    (point,) = metrics["pyrometer_detections"].sum.data_points
    assert (point.as_double, point.attributes[0].value.string_value) == (5, "car")


@pytest.mark.parametrize(("extra", "module"), [("redis", "redis"), ("otlp", "opentelemetry.exporter")])
def test_a_missing_package_names_its_extra(make, monkeypatch, extra, module):
    for name in [name for name in sys.modules if name.startswith(module)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=rf"pyrometer\[{extra}\]"):
        make(**{extra: "redis://127.0.0.1"})


def test_the_tick_comes_by_itself(make):
    monitor = make(tick_s=0.02)
    monitor.watch(infer)()
    until(lambda: monitor.last(60).sequence >= 3, "three ticks")
