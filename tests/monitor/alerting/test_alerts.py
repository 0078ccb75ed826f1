"""Alerts are told once, grouped, cooled down, escalated and resolved; a failure of delivery is counted and tells nobody."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pyrometer.errors import InputError
from pyrometer.monitor.alerting.alert import Alert, Notice, Severity
from pyrometer.monitor.alerting.alerts import Alerts
from pyrometer.monitor.alerting.delivery import MOST_TRIES, MOST_WAITING, Delivery
from pyrometer.monitor.alerting.desk import AlertDesk, DeskSettings
from pyrometer.monitor.alerting.routes import Alertmanager, AppriseRoute, NotDeliveredError, Webhook
from pyrometer.monitor.detecting.alarm import Change
from pyrometer.monitor.detecting.detector import Reading
from pyrometer.monitor.detecting.listener import Notice as DetectorNotice
from pyrometer.monitor.detecting.watch import Noticed

SETTINGS = DeskSettings(wait_s=5, cool_down_s=300, repeat_s=10_000, escalate_s=3600)


def alert(name="latency", **fields):
    return Alert(name=name, labels={"model": "m"}, summary="slow", since_s=1.0, **fields)


def told(desk, *times):
    return [notice for now_s in times for notice in desk.notices(now_s)]


def test_the_same_problem_is_told_once_and_its_end_too():
    desk = AlertDesk(SETTINGS)
    for now_s in range(0, 60, 2):
        desk.fire(alert(), float(now_s))
    first = told(desk, *range(100))
    assert [notice.title for notice in first] == ["WARNING m: latency"]
    desk.end(alert(), 400.0)
    assert [notice.title for notice in told(desk, *range(400, 500))] == ["RESOLVED m: latency"]
    assert told(desk, *range(500, 9000, 100)) == []


def test_alerts_of_a_group_share_a_notice():
    desk = AlertDesk(SETTINGS)
    desk.fire(alert("a"), 0.0)
    desk.fire(alert("b"), 3.0)
    assert told(desk, 4.0) == []
    (notice,) = told(desk, 5.0)
    assert [one.name for one in notice.firing] == ["a", "b"]


def test_flapping_is_one_problem():
    desk = AlertDesk(SETTINGS)
    notices = []
    for cycle in range(10):
        desk.fire(alert(), cycle * 20.0)
        notices += told(desk, cycle * 20.0 + 6)
        desk.end(alert(), cycle * 20.0 + 10)
        notices += told(desk, cycle * 20.0 + 16)
    assert len(notices) == 1
    assert told(desk, 310.0)[0].num_held_back > 0


def test_what_ended_before_anyone_was_told_is_not_told():
    desk = AlertDesk(SETTINGS)
    desk.fire(alert(), 0.0)
    desk.end(alert(), 2.0)
    assert told(desk, 5.0, 100.0) == []


def test_a_worse_problem_breaks_the_cool_down():
    desk = AlertDesk(SETTINGS)
    desk.fire(alert(), 0.0)
    assert len(told(desk, 5.0)) == 1
    desk.fire(alert("other"), 10.0)
    assert told(desk, 20.0) == []
    desk.fire(alert("worst", severity=Severity.CRITICAL), 21.0)
    (notice,) = told(desk, 27.0)
    assert notice.severity == Severity.CRITICAL


def test_what_lasts_escalates_once_and_repeats():
    desk = AlertDesk(SETTINGS)
    desk.fire(alert(), 0.0)
    assert len(told(desk, 5.0)) == 1
    escalated = told(desk, *range(3590, 3700, 10))
    assert [(one.escalated, one.severity) for one in escalated] == [(True, Severity.CRITICAL)]
    assert len(told(desk, *range(4000, 14_000, 100))) == 1  # repeated


def test_memory_of_the_desk_is_bounded():
    desk = AlertDesk(DeskSettings(most_alerts=3))
    for number in range(10):
        desk.fire(alert(str(number)), 0.0)
    assert desk.num_left_out == 7


class Receiver:
    """A real server that answers as it is told."""

    def __init__(self, answers=()):
        self.answers, self.bodies = list(answers), []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.bodies.append((self.path, json.loads(body)))
                code, headers = receiver.answers.pop(0) if receiver.answers else (200, {})
                self.send_response(code)
                for key, value in headers.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.close()


def notice(**fields):
    return Notice(group="m", severity=Severity.WARNING, firing=[alert()], **fields)


def test_a_webhook_gets_the_notice_and_failures_are_retried_with_a_pause(receiver):
    receiver.answers = [(503, {}), (429, {"Retry-After": "7"}), (200, {})]
    delivery = Delivery([Webhook(receiver.url)])
    delivery.put(notice())
    assert [delivery.send_due(now_s) for now_s in (0.0, 0.5, 1.0, 7.9, 8.0)] == [0, 0, 0, 0, 1]
    (stats,) = delivery.stats().values()
    assert (stats["sent"], stats["failed_attempts"], stats["dropped"]) == (1, 2, 0)
    assert len(receiver.bodies) == 3
    assert receiver.bodies[0][1]["title"] == "WARNING m: latency"


def test_a_refusal_is_final_and_tries_are_bounded(receiver):
    receiver.answers = [(400, {})] + [(500, {})] * 50
    delivery = Delivery([Webhook(receiver.url)])
    delivery.put(notice())
    delivery.send_due(0.0)
    assert next(iter(delivery.stats().values()))["dropped"] == 1
    delivery = Delivery([Webhook(receiver.url)])
    delivery.put(notice())
    for now_s in range(0, 10_000, 100):
        delivery.send_due(float(now_s))
    assert next(iter(delivery.stats().values()))["failed_attempts"] == MOST_TRIES
    assert len(receiver.bodies) == 1 + MOST_TRIES


def test_a_dead_route_holds_up_no_other_and_its_queue_is_bounded(receiver):
    class Dead:
        name, least = "dead", Severity.INFO

        def send(self, _notice, /):
            raise RuntimeError("never")

    delivery = Delivery([Dead(), Webhook(receiver.url)])
    for number in range(MOST_WAITING + 20):
        delivery.put(notice(num_held_back=number))
    assert delivery.send_due(0.0) == MOST_WAITING
    stats = delivery.stats()
    assert stats["dead"]["waiting"] == MOST_WAITING
    assert stats["dead"]["dropped"] == 20
    assert "RuntimeError" in stats["dead"]["last_error"]


def test_below_its_severity_a_route_is_told_only_the_end_of_what_it_heard_of(receiver):
    delivery = Delivery([Webhook(receiver.url, least=Severity.CRITICAL)])
    delivery.put(notice())
    delivery.put(Notice(group="m", severity=Severity.INFO, resolved=[alert()]))
    assert delivery.send_due(0.0) == 0
    delivery.put(Notice(group="m", severity=Severity.CRITICAL, firing=[alert()]))
    delivery.put(Notice(group="m", severity=Severity.INFO, resolved=[alert()]))
    assert delivery.send_due(0.0) == 2


def change(*, firing=True):
    reading = Reading(at_s=1.0, after=1, score=2.0, value=0.5, evidence="0.5 s, normal is 0.1 s")
    return DetectorNotice(
        "infer.latency", Noticed("limit", Change(at_s=1.0, firing=firing, since_s=1.0, reading=reading), 1)
    )


def test_notices_of_detectors_reach_the_receiver_with_what_was_collected(receiver):
    now = [0.0]
    alerts = Alerts(
        [Webhook(receiver.url)],
        {"model": "m"},
        settings=SETTINGS,
        collected=lambda _n: ["run 20260101"],
        clock=lambda: now[0],
    )
    alerts(change())
    now[0] = 6.0
    alerts.close()
    (path, body) = receiver.bodies[0]
    assert path == "/hook"
    assert body["firing"][0]["evidence"] == ["0.5 s, normal is 0.1 s", "run 20260101"]
    assert body["firing"][0]["severity"] == int(Severity.CRITICAL)


def test_apprise_posts_to_the_receiver(receiver):
    pytest.importorskip("apprise")
    route = AppriseRoute([receiver.url.replace("http://", "json://")])
    route.send(notice())
    assert receiver.bodies[0][1]["title"] == "WARNING m: latency"
    receiver.answers = [(500, {})]
    with pytest.raises(NotDeliveredError):
        route.send(notice())


def test_bad_addresses_are_one_line():
    for act in (
        lambda: Webhook("ftp://x"),
        lambda: Alertmanager("localhost:9093"),
        lambda: DeskSettings(wait_s=-1),
    ):
        with pytest.raises(InputError, match="legal"):
            act()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.slow
def test_a_real_alertmanager_holds_the_alert_and_learns_of_its_end(tmp_path):
    program = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
    if program is None:
        pytest.skip("prometheus-alertmanager is not installed: apt-get install prometheus-alertmanager")
    config = tmp_path / "am.yml"
    config.write_text("route: {receiver: none}\nreceivers: [{name: none}]\n")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    arguments = [
        program,
        f"--config.file={config}",
        f"--storage.path={tmp_path}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
    ]
    with (tmp_path / "log").open("wb") as log, subprocess.Popen(arguments, stdout=log, stderr=log) as server:
        try:
            wait_for(f"{url}/-/ready", Path(log.name))
            route = Alertmanager(url, {"team": "robots"})
            lasting = alert(evidence=["P99 is 3 s"], severity=Severity.CRITICAL)
            now_s = time.time()
            route.send(
                Notice(
                    group="m",
                    severity=Severity.CRITICAL,
                    firing=[
                        Alert(
                            name="latency",
                            severity=Severity.CRITICAL,
                            labels=lasting.labels,
                            since_s=now_s,
                            evidence=lasting.evidence,
                        )
                    ],
                )
            )
            (held,) = get(f"{url}/api/v2/alerts")
            assert held["labels"] == {
                "alertname": "latency",
                "severity": "critical",
                "team": "robots",
                "model": "m",
            }
            assert held["annotations"]["evidence"] == "P99 is 3 s"
            route.send(
                Notice(
                    group="m",
                    severity=Severity.INFO,
                    resolved=[
                        Alert(
                            name="latency",
                            severity=Severity.CRITICAL,
                            labels=lasting.labels,
                            since_s=now_s,
                            ended_s=time.time(),
                        )
                    ],
                )
            )
            assert get(f"{url}/api/v2/alerts") == []
        finally:
            server.terminate()


def get(url):
    with urllib.request.urlopen(url, timeout=5) as answer:
        return json.load(answer)


def wait_for(url, log):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(url, timeout=1).close()
        except OSError:
            threading.Event().wait(0.1)
        else:
            return
    pytest.fail(log.read_text())


def test_what_ends_at_once_is_told_where_nothing_is_waited_for(receiver):
    settings = DeskSettings(wait_s=0, cool_down_s=0)
    alerts = Alerts([Webhook(receiver.url)], {"model": "m"}, settings=settings, clock=lambda: 2.0)
    alerts(change())
    alerts(change(firing=False))
    alerts.close()
    assert [len(body["firing"]) for _, body in receiver.bodies] == [1, 0]
    assert [len(body["resolved"]) for _, body in receiver.bodies] == [0, 1]
