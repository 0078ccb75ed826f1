"""The application below another server than ours, as in a replica: no socket, no signals, and clients that are cancelled."""

import asyncio
import json

import pytest
import torch
from moody import WAITS, WIDTH, body_of, row

from pyrometer.serving.deployment import Deployment
from pyrometer.serving.settings import ServeSettings
from pyrometer.serving.starting.source import Source
from pyrometer.workload.inference import Inference


@pytest.fixture
def deployment(moody, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = ServeSettings(batch=4, budget_s=0.05)
    source = Source(work=Inference(moody, torch.randn(2, WIDTH), name="moody"))
    made = Deployment(source, settings, {}, url="http://elsewhere:8000")
    made.prepare()
    yield made
    made.close()


async def asked(app, path, body=b"", method="GET"):
    sent = []

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        sent.append(message)

    await app({"type": "http", "path": path, "method": method, "headers": []}, receive, send)
    return sent[0]["status"], sent[1]["body"]


def infer(app, first):
    body = json.dumps(body_of([row(first)])).encode()
    return asyncio.create_task(asked(app, "/v2/models/moody/infer", body, "POST"))


def test_it_answers_with_metrics_of_all_and_loads_nothing_anew(deployment):
    async def main():
        async def metrics():
            return b"of all"

        app = deployment.application(labels={"replica": "a"}, metrics=metrics, may_reload=False)
        with app.monitor:
            assert (await infer(app, 3.0))[0] == 200
            assert await asked(app, "/metrics") == (200, b"of all")
            assert (await asked(app, "/v2/repository/models/moody/load", method="POST"))[0] == 404

    asyncio.run(main())


def test_a_cancelled_request_leaves_the_queue(deployment, moody):
    async def main():
        app = deployment.application()
        with app.monitor:
            running = infer(app, WAITS)
            await asyncio.to_thread(moody.is_waiting.wait, 60)
            waiting = infer(app, 3.0)
            await asyncio.sleep(0)  # it runs up to where it waits for its batch
            assert app.batcher.num_waiting == 1
            waiting.cancel()
            await asyncio.wait([waiting])
            assert app.batcher.num_waiting == 0
            moody.go_on.set()
            assert (await running)[0] == 200

    asyncio.run(main())
