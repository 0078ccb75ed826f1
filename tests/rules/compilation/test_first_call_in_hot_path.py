from __future__ import annotations

import msgspec
import pytest
import torch

from pyrometer.bench.measure import measure
from pyrometer.rules.case import Case
from pyrometer.workload.inference import Inference

HANDLER = """
import torch
from fastapi import FastAPI

app = FastAPI()
{made}


@app.post("/predict")
def predict(values: list[float]):
    {body}
    return {called}(torch.tensor(values)).tolist()
"""


def _handler(made: str, body: str = "values = values[:8]", called: str = "model") -> str:
    return HANDLER.format(made=made, body=body, called=called)


MODEL = "net = torch.nn.Linear(8, 2)\n"


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(_handler(f"{MODEL}model = torch.compile(net)  # <-"), id="no warm-up"),
        pytest.param(
            _handler(
                f"{MODEL}model = None",
                "global model\n    if model is None:\n        model = torch.compile(net)  # <-",
            ),
            id="lazily",
        ),
        pytest.param(
            _handler(
                "net = torch.nn.Linear(8, 2)\n\n\n@torch.compile  # <-\ndef run(x):\n    return net(x)",
                called="run",
            ),
            id="a decorated function",
        ),
    ],
)
def test_handlers_that_make_the_first_call(lines, marked, source):
    assert lines("PYR406", source) == marked(source)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(_handler(f"{MODEL}model = torch.compile(net)\nmodel(torch.zeros(8))"), id="warmed up"),
        pytest.param(
            _handler(
                f"{MODEL}model = torch.compile(net)\n\n\n@app.on_event('startup')\ndef warm():\n    model(torch.zeros(8))"
            ),
            id="warmed up at the start",
        ),
        pytest.param(_handler(f"{MODEL}model = torch.compile(net)\nwarm_up(model)"), id="given away"),
        pytest.param(_handler(f"{MODEL}model = net"), id="eager"),
        pytest.param(
            "import torch\nmodel = torch.compile(net)\nfor batch in train_loader:\n    loss = model(batch).mean()\n    loss.backward()\n",
            id="training",
        ),
    ],
)
def test_near_misses_in_source(lines, source):
    assert lines("PYR406", source) == []


@pytest.fixture(scope="module")
def measured() -> Case:
    """A compiled model with a deadline, measured from its first call on."""
    torch._dynamo.reset()
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
    work = Inference(torch.compile(model, backend="aot_eager"), torch.ones(4, 8), deadline_s=0.01)
    return Case(target="", measurement=measure(work, budget_s=0.3, beyond_first_call=True))


def test_a_first_call_that_compiles_past_the_deadline(measured, findings):
    (finding,) = findings("PYR406", measured)
    first_s = measured.measurement.first_call_s

    assert finding.evidence["first_call_s"] == first_s > 0.01
    assert "times the deadline of 10.0 ms" in finding.message
    assert finding.links == ["/measurement/first_call_s"]
    assert finding.cost is None


def test_warmed_up_the_first_call_keeps_the_deadline(findings):
    compiled = torch.compile(torch.nn.Linear(8, 8), backend="aot_eager")
    work = Inference(compiled, torch.ones(4, 8), deadline_s=60.0)
    measure(work, budget_s=0.1)  # the warm-up
    again = measure(work, budget_s=0.1)
    assert again.compile_s in (None, 0.0)
    assert findings("PYR406", Case(target="", measurement=again)) == []


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"deadline_s": None}, id="no deadline"),
        pytest.param({"deadline_s": 1e6}, id="in time"),
        pytest.param({"compile_s": None}, id="nothing compiled"),
        pytest.param({"compile_s": 1e-6}, id="slow for something else"),
        pytest.param({"median_s": 1e3}, id="as slow as every call"),
    ],
)
def test_near_misses_in_measurements(measured, findings, changed):
    measurement = msgspec.structs.replace(measured.measurement, **changed)
    assert findings("PYR406", Case(target="", measurement=measurement)) == []
