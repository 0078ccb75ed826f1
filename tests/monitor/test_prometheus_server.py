"""A real Prometheus scrapes us, fires the alert that we wrote, and a real Alertmanager tells of it and of its end."""

from __future__ import annotations

import http.server
import json
import threading

import pytest
from services import Service, free_port, get_json, needs, until

from pyrometer.monitor.dashboards.objectives import Objectives
from pyrometer.monitor.dashboards.plain_yaml import yaml_of
from pyrometer.monitor.dashboards.write import RULES, write_dashboards

pytestmark = pytest.mark.slow


class Alarming:
    """A detector that alarms when it is told to."""

    def __init__(self):
        self.on = False

    def samples(self, call, at_s, latencies_s):
        """Latencies do not matter here."""

    def tick(self, tick):
        return []

    def alarms(self):
        return ["latency"] if self.on else []


class Hook(http.server.BaseHTTPRequestHandler):
    """Takes what Alertmanager posts."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen += [(alert["labels"]["alertname"], alert["status"]) for alert in body["alerts"]]
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args):
        """Nobody reads it."""


@pytest.fixture
def hook():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    server.seen = []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def alertmanager(tmp_path, hook):
    program = needs("prometheus-alertmanager", "prometheus-alertmanager")
    write_dashboards(tmp_path, Objectives(hold="0s", webhook=f"http://127.0.0.1:{hook.server_address[1]}/"))
    config = tmp_path / "alertmanager.yml"
    quick = config.read_text().replace('"30s"', '"0s"').replace('"5m"', '"1s"').replace('"10s"', '"0s"')
    config.write_text(quick)
    port = free_port()
    argv = [program, f"--config.file={config}", f"--storage.path={tmp_path / 'am'}", "--cluster.listen-address=", f"--web.listen-address=127.0.0.1:{port}"]  # fmt: skip
    service = Service(argv, tmp_path).start(lambda: get_json(f"http://127.0.0.1:{port}/api/v2/status"))
    yield port
    service.stop()


@pytest.fixture
def prometheus(tmp_path, alertmanager, make):
    program = needs("prometheus", "prometheus")
    monitor = make(model="perception", port=0, tick_s=0.5).start()
    config = tmp_path / "prometheus.yml"
    every = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    target = {"targets": [f"127.0.0.1:{monitor.port}"]}
    alerting = {"alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{alertmanager}"]}]}]}
    config.write_text(
        yaml_of(
            {
                "global": every,
                "rule_files": [str(tmp_path / RULES)],
                "scrape_configs": [{"job_name": "pyrometer", "static_configs": [target]}],
                "alerting": alerting,
            }
        )
    )
    port = free_port()
    argv = [program, f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'tsdb'}", f"--web.listen-address=127.0.0.1:{port}"]  # fmt: skip
    service = Service(argv, tmp_path)
    api = f"http://127.0.0.1:{port}/api/v1"

    def begin():
        service.start(lambda: get_json(f"{api}/status/runtimeinfo"))

    begin()
    yield monitor, api, service.stop, begin
    service.stop()


def asked(api, query):
    """The first value of a query."""
    found = get_json(f"{api}/query?query={query}")["data"]["result"]
    return float(found[0]["value"][1]) if found else None


def test_an_alarm_fires_and_resolves(prometheus, hook):
    monitor, api, *_ = prometheus
    detector = Alarming()
    monitor.add(detector)
    watched = monitor.watch(name="infer")(lambda: None)
    for _ in range(500):
        watched()
    assert until(lambda: asked(api, "pyrometer_requests_total") == 500, "a scrape")
    assert asked(api, 'up{job="pyrometer"}') == 1
    detector.on = True
    until(lambda: ("PyrometerAlarm", "firing") in hook.seen, "an alert")
    assert ("PyrometerAlarm", "resolved") not in hook.seen
    detector.on = False
    until(lambda: ("PyrometerAlarm", "resolved") in hook.seen, "the end of the alert")


@pytest.mark.exhaustive
def test_prometheus_that_ends_and_begins_is_no_matter(prometheus):
    monitor, api, end, begin = prometheus
    watched = monitor.watch(name="infer")(lambda: 7)
    assert watched() == 7
    until(lambda: asked(api, "pyrometer_requests_total") == 1, "a scrape")
    before = monitor._collector.fault_count.value()
    end()
    with pytest.raises(OSError, match="refused"):
        get_json(f"{api}/status/runtimeinfo")
    for _ in range(100):
        watched()
    assert monitor.flush(30)
    begin()
    until(lambda: asked(api, "pyrometer_requests_total") == 101, "the next scrape")
    assert monitor._collector.fault_count.value() == before
