"""A served model that tests talk to over its port."""

import httpx
import pytest
import torch
from moody import WIDTH, Moody

import pyrometer as pm
from pyrometer.workload.inference import Inference


@pytest.fixture
def moody():
    model = Moody()
    yield model
    model.go_on.set()


@pytest.fixture
def serving(tmp_path, monkeypatch):
    """Serves models until the end of the test; a monitor writes below the test's folder."""
    monkeypatch.chdir(tmp_path)
    running = []

    def start(model, inputs=None, **settings):
        inputs = torch.randn(2, WIDTH) if inputs is None else inputs
        settings = {"port": 0, "batch": 4, "budget_s": 0.05, "drain_s": 20.0, **settings}
        server = pm.serve(Inference(model, inputs, name="moody"), **settings)
        running.append(server)
        return server

    yield start
    for server in running:
        server.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One that all tests of a file share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("served"))
        work = Inference(Moody(), torch.randn(2, WIDTH), name="moody")
        with pm.serve(work, port=0, batch=4, budget_s=0.05) as running:
            yield running


@pytest.fixture(scope="module")
def client(server):
    with httpx.Client(base_url=server.url, timeout=60) as made:
        yield made
