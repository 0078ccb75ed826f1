"""Counts from Prometheus' text, and the verdict over HTTP."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request

import pytest
from rollouts import counts, make_plan

from pyrometer.errors import InputError
from pyrometer.monitor.export.server import MetricsServer
from pyrometer.rollout.controller import look, start_rollout, watch
from pyrometer.rollout.ledger import open_ledger
from pyrometer.rollout.observed import NEW, OLD, Reported, observed
from pyrometer.rollout.prometheus import PrometheusSource, Series, grown, read_text
from pyrometer.rollout.verdicts import verdict_of, verdict_pages


@pytest.fixture
def ledger(tmp_path):
    return open_ledger(tmp_path / "store")


def text(version, requests, errors, quick, slow):
    name = "pyrometer_request_latency_seconds_bucket"
    label = f'model="m",version="{version}"'
    return (
        f'pyrometer_requests_total{{{label}}} {requests}\npyrometer_request_errors_total{{{label},error="E"}} {errors}\n'
        f'{name}{{{label},le="0.0078125"}} {quick}\n{name}{{{label},le="0.015625"}} {quick + slow}\n'
        f'{name}{{{label},le="+Inf"}} {quick + slow}\nunrelated 3\n# HELP x y\n'
    )


def test_growth_is_counted_under_the_share_that_held(ledger):
    state = start_rollout(ledger, make_plan(), "me", lambda: 0.0)
    pages = iter(
        [
            text("v1", 100, 5, 60, 35) + text("v2", 10, 0, 5, 5),
            text("v1", 160, 6, 90, 64) + text("v2", 14, 1, 7, 6),
        ]
    )
    source = PrometheusSource(["http://a/metrics"], fetch=lambda _url: next(pages))
    source.report(ledger, state)
    assert ledger.reports("perception", 1) == []  # nobody knows under which share those were
    source.report(ledger, state)
    (epoch,) = observed(state.shares, ledger.reports("perception", 1), keep_reports=False).epochs
    assert (epoch.old.num, epoch.old.num_of("errors"), sum(epoch.old.buckets("latency").values())) == (
        60,
        1,
        59,
    )
    assert (epoch.new.num, epoch.new.num_of("errors"), sorted(epoch.new.buckets("latency").values())) == (
        4,
        1,
        [1, 2],
    )


def test_a_counter_that_starts_over_counts_from_zero():
    before, now = (
        read_text(text("v1", *given), Series())["v1"] for given in ((100, 0, 60, 40), (30, 0, 20, 10))
    )
    assert grown(before, now).num == 30
    assert sorted(grown({}, now).buckets("latency").values()) == [10, 20]


def test_our_own_exposition_is_read(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    import pyrometer as pm

    monitor = pm.Monitor(model="m", version="v2", folder="", tick_s=3600)
    try:
        work = monitor.watch(lambda: 1)
        for _ in range(50):
            work()
        monitor.flush()
        page = monitor._exports.render().decode()
    finally:
        monitor.close()
    found = read_text(page, Series())["v2"]
    assert grown({}, found).num == 50


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://127.0.0.1:1/metrics"])
def test_an_address_that_does_not_answer_is_told_in_one_line(ledger, url):
    state = start_rollout(ledger, make_plan(), "me", lambda: 0.0)
    with pytest.raises(InputError) as caught:
        PrometheusSource([url]).report(ledger, state)
    assert "\n" not in str(caught.value)


def ask(port, path, body=None, **headers):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=body, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error) if error.headers["Content-Type"] == "application/json" else None


def test_argo_and_flagger_are_told_the_verdict(ledger):
    start_rollout(ledger, make_plan(min_s=0.0, min_samples=1), "me", lambda: 0.0)
    latest = {"perception": look(ledger, "perception", lambda: 1.0)}
    server = MetricsServer("127.0.0.1", 0, verdict_pages(latest))
    try:
        status, said = ask(server.port, "/verdict")
        assert (status, said["verdict"], said["share"], said["state"]) == (200, "undecided", 0.01, "running")
        assert (
            ask(server.port, "/gate", b'{"name": "x"}')[0] == ask(server.port, "/rollback", b"{}")[0] == 403
        )
        ledger.report(
            "perception", 1, [Reported(epoch=0, arm=NEW, reporter="a", counts=counts(9, not_finite=1))]
        )
        latest["perception"] = look(ledger, "perception", lambda: 2.0)
        assert ask(server.port, "/perception/verdict")[1]["verdict"] == "worse"
        assert (ask(server.port, "/rollback", b"{}")[0], ask(server.port, "/gate", b"{}")[0]) == (200, 403)
    finally:
        server.close()


def test_a_token_keeps_others_from_the_verdict(ledger):
    start_rollout(ledger, make_plan(), "me", lambda: 0.0)
    pages = verdict_pages({"perception": look(ledger, "perception", lambda: 1.0)})
    token = "0123456789abcdef"
    server = MetricsServer("0.0.0.0", 0, pages, token=token)
    try:
        for headers in ({}, {"Authorization": f"Bearer {token}x"}, {"Authorization": token}):
            for path in ("/verdict", "/rollback", "/nothing"):
                assert ask(server.port, path, **headers) == (401, None)
            assert ask(server.port, "/gate", b"{}", **headers) == (401, None)
        status, said = ask(server.port, "/verdict", Authorization=f"Bearer {token}")
        assert (status, said["verdict"]) == (200, "undecided")
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/healthz", timeout=10) as answer:
            assert answer.status == 200  # probes have none
    finally:
        server.close()


def test_a_promoted_version_may_go_on(ledger):
    start_rollout(ledger, make_plan(stages=[0.5, 1.0], min_s=0.0, min_samples=1), "me", lambda: 0.0)
    ledger.report(
        "perception",
        1,
        [Reported(epoch=0, arm=arm, reporter="a", counts=counts(20_000)) for arm in (NEW, OLD)],
    )
    found = verdict_of(look(ledger, "perception", lambda: 1.0))
    assert (found["verdict"], found["state"]) == ("safe", "promoted")


def test_a_watch_survives_a_ledger_that_comes_and_goes(ledger, monkeypatch):
    from pyrometer.errors import StoreError

    start_rollout(ledger, make_plan(), "me", lambda: 0.0)
    ledger.report("perception", 1, [Reported(epoch=0, arm=NEW, reporter="a", counts=counts(9, not_finite=1))])
    read, calls = ledger.read, []

    def flaky(name):
        calls.append(name)
        if len(calls) < 4:
            raise StoreError("away")
        return read(name)

    monkeypatch.setattr(ledger, "read", flaky)
    seen = watch(ledger, ["perception"], every_s=0, tell=lambda _look: None, wait=threading.Event().wait)
    assert [one.state.status for one in seen] == ["rolled back"]
