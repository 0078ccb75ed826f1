"""A served model that leaks: it is noticed and told, and at the limit of memory the server ends without losing what it accepted."""

import json
import time

import httpx
import pytest
from moody import PATH, WAITS, Moody, beside, body_of, infer, row
from prometheus_client.parser import text_string_to_metric_families
from services import until

from pyrometer.errors import UserProgramError
from pyrometer.monitor.collector import Clocks
from pyrometer.monitor.signals.signal import Reading
from pyrometer.monitor.signals.system import SystemSignal

MIB = 1 << 20
BATCH_S = 10.0
"""That passes with each batch, as these tests have it."""


class Leaking(Moody):
    """Keeps a MiB per batch, as the memory of these tests has it."""

    kept_bytes = 500 * MIB
    each = MIB

    def forward(self, x):
        self.kept_bytes += self.each
        return super().forward(x)


@pytest.fixture
def leaking(monkeypatch, tmp_path):
    """A model whose server has a clock that its batches drive, and the memory that it says."""
    model = Leaking()
    began_s = time.time()

    def wall():
        return began_s + BATCH_S * len(model.batches)

    def read(signal):
        signal.every_ticks = 1
        return Reading({"process_memory_bytes": float(model.kept_bytes)}, {})

    monkeypatch.setattr(Clocks, "wall", staticmethod(wall))
    monkeypatch.setattr(SystemSignal, "read", read)
    (tmp_path / "pyproject.toml").write_text('[tool.pyrometer.monitor]\ntick = "10ms"\n')
    yield model
    model.go_on.set()


def alarms_now(page):
    families = {one.name: one for one in text_string_to_metric_families(page)}
    found = families.get("pyrometer_monitor_alarms")
    return 0 if found is None else found.samples[0].value


def alarms_told(folder):
    lines = [json.loads(line) for file in folder.glob("*.jsonl") for line in file.read_text().splitlines()]
    return [line for line in lines if line.get("event") == "alarm"]


def test_a_model_that_leaks_is_told_and_goes_on_answering(serving, leaking, tmp_path, capfd):
    server = serving(leaking)
    with httpx.Client(base_url=server.url, timeout=60) as client:
        answers = []

        def alarming():
            answers.append(infer(client, row(1.0)).status_code)
            return alarms_now(client.get("/metrics").text) == 1

        until(alarming, "the leak was never noticed")
        assert set(answers) == {200}
        assert client.get("/v2/health/ready").status_code == 200  # growth alone ends nothing
    server.close()
    told = alarms_told(tmp_path / ".pyrometer/monitor")
    assert [line["fields"]["alarm"] for line in told] == ["process_memory_bytes.growth/leak"]
    assert "per hour" in told[0]["fields"]["evidence"]


def test_a_model_that_keeps_nothing_raises_no_alarm(serving, leaking, tmp_path):
    leaking.each = 0
    server = serving(leaking)
    with httpx.Client(base_url=server.url, timeout=60) as client:
        for _ in range(200):
            assert infer(client, row(1.0)).status_code == 200
    server.close()
    assert alarms_told(tmp_path / ".pyrometer/monitor") == []


def test_at_the_limit_of_memory_what_was_accepted_is_answered_and_nothing_new_is(serving, leaking):
    server = serving(leaking, most_memory_bytes=600 * MIB)
    running = beside(server.url, row(WAITS))
    assert leaking.is_waiting.wait(60)
    with httpx.Client(base_url=server.url, timeout=60) as client:
        waiting = [beside(server.url, row(1.0)) for _ in range(6)]
        until(lambda: client.get("/v2/models/moody/stats").json()["waiting_rows"] == 6, "six never waited")
        assert client.get("/v2/health/ready").status_code == 200
        leaking.kept_bytes = 601 * MIB
        until(lambda: client.get("/v2/health/ready").status_code == 503, "it stays ready")
        refused = httpx.post(server.url + PATH, json=body_of([row(1.0)]), timeout=60)
        assert refused.status_code == 503
        assert refused.headers["Retry-After"]
        leaking.go_on.set()
        assert all(one.result().status_code == 200 for one in [running, *waiting])
    with pytest.raises(UserProgramError, match="most-memory"):
        server.wait(60)
