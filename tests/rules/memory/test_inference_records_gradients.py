"""PYR201: evaluating code that records a graph, in text and in a run."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.memory.advice.rules.recording import no_grad
from pyrometer.rules.case import Case
from pyrometer.workload.program.record import Program

CODE = "PYR201"

HEAD = "import torch\nfrom torch import nn\n\n"


@pytest.mark.parametrize(
    "body",
    [
        "def evaluate(model, loader):\n    for x in loader:\n        out = model(x)  # <-\n",
        "def run(model, loader):\n    model.eval()\n    for x in loader:\n        out = model(x)  # <-\n    return out\n",
        "def validate(loader, crit):\n    net = nn.Linear(2, 2)\n    for x, y in loader:\n        crit(net(x), y)  # <-\n",
    ],
)
def test_it_finds_evaluating_loops_that_record(fires, body):
    fires(CODE, HEAD + body)


@pytest.mark.parametrize(
    "body",
    [
        "@torch.no_grad()\ndef evaluate(model, loader):\n    for x in loader:\n        out = model(x)\n",
        "def evaluate(model, loader):\n    with torch.inference_mode():\n        for x in loader:\n            out = model(x)\n",
        "def evaluate(model, loader):\n    torch.set_grad_enabled(False)\n    for x in loader:\n        out = model(x)\n",
        "def attack(model, loader):\n    model.eval()\n    for x in loader:\n        x.requires_grad_(True)\n        model(x).sum().backward()\n",
        "def train(model, loader, optimizer):\n    for x in loader:\n        model(x).sum().backward()\n        optimizer.step()\n",
        "def features(model, loader):\n    for x in loader:\n        yield model(x)\n",
        "def evaluate(scores, loader):\n    for x in loader:\n        total = scores(x)\n",
    ],
)
def test_it_is_silent_without_gradients_or_where_they_are_wanted(silent, body):
    silent(CODE, HEAD + body)


def test_a_part_of_forward_is_left_to_those_who_call_the_module(lines):
    text = """
    import torch
    from torch import nn

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.heads = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
            self.body = nn.Linear(4, 4)

        def forward(self, x, num_tokens):
            return self.predict_masks(x, num_tokens)

        def predict_masks(self, x, num_tokens):
            found = []
            for i in range(num_tokens):
                found.append(self.body(x[:, i]))
            return found
    """
    assert lines("PYR201", text) == []


def test_the_fix_decorates_the_function_and_nothing_is_recorded_any_more(matches, fixed):
    text = (
        HEAD
        + "def evaluate(model, loader):\n    model.eval()\n    for x in loader:\n        out = model(x)\n    return out\n"
    )
    (match,) = matches(CODE, text)
    changed = fixed(text, [match])
    assert matches(CODE, changed) == []
    names: dict[str, object] = {}
    exec(changed, names)
    model, batch = nn.Linear(2, 2), torch.ones(1, 2)
    out = names["evaluate"](model, [batch])
    assert not out.requires_grad
    assert torch.equal(out, model(batch))


def test_it_is_no_fix_for_a_decorated_function_or_without_the_name_torch(matches):
    text = "import functools\nfrom torch import nn\n\n@functools.cache\ndef evaluate(loader):\n    net = nn.Linear(2, 2)\n    for x in loader:\n        net(x)\n"
    (match,) = matches(CODE, text)
    assert match.fix is None


def forward(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return model(x).sum()


def forward_without(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return model(x).sum()


def test_what_a_real_run_recorded_is_told_and_goes_under_no_grad(findings, recorded, rehearsed):
    model = nn.Sequential(*[nn.Sequential(nn.Linear(32, 32), nn.Tanh()) for _ in range(6)])
    x = torch.randn(256, 32)
    profile = rehearsed(pm.Call(forward, model, x), no_grad)
    (finding,) = findings(CODE, Case(target="t", memory=profile))
    assert finding.advice.lever == "inference_mode"
    assert finding.confidence == "high"
    assert finding.evidence["activations_bytes"] == profile.ledger_bytes["activations"] > 0
    after = recorded(pm.Call(forward_without, model, x))
    assert profile.peak_bytes - after.peak_bytes == finding.advice.gain.saves_bytes > 0
    assert findings(CODE, Case(target="t", memory=after)) == []
    assert torch.equal(forward(model, x), forward_without(model, x))


def program(**fields: str) -> Program:
    return Program(**{"kind": "inference", "device": "cpu", "compiled": False, "grad_mode": "grad", **fields})


def test_a_program_in_grad_mode_with_activations_is_told_without_a_rehearsal(findings, profile):
    memory = profile({"activations": 30, "parameters": 30})
    described = program(model_file="/home/user/model.py", model_line=3)
    (finding,) = findings(CODE, Case(target="t", memory=memory, program=described))
    assert (finding.where.file, finding.where.line) == ("/home/user/model.py", 3)
    assert finding.advice.gain is None
    assert finding.cost.bytes == 30 * 2**20


@pytest.mark.parametrize(
    "fields", [{"kind": "training"}, {"grad_mode": "no_grad"}, {"grad_mode": "inference_mode"}]
)
def test_trainings_and_programs_without_gradients_are_silent(findings, profile, fields):
    memory = profile({"activations": 30, "parameters": 30})
    assert findings(CODE, Case(target="t", memory=memory, program=program(**fields))) == []


@pytest.mark.parametrize(
    "body",
    [
        "net = nn.Linear(2, 2).eval()\n\ndef score(loader):\n    for x in loader:\n        out = net(x)  # <-\n",
        "def build():\n    net = nn.Linear(2, 2)\n    net.eval()\n    return net\n\ndef score(net, loader):\n    for x in loader:\n        out = net(x)  # <-\n",
    ],
)
def test_a_file_that_never_goes_backward_only_evaluates(fires, body):
    fires(CODE, HEAD + body)


def test_a_part_of_what_runs_without_gradients_is_left_alone(lines):
    text = """\
    import torch

    def score(model, loader):
        model.eval()
        scores = []
        for images in loader:
            scores.append(model(images).argmax(1))
        return scores

    {how}
    def evaluate(model, loader):
        return score(model, loader)
    """
    assert lines("PYR201", text.format(how="@torch.inference_mode()")) == []
    assert lines("PYR201", text.format(how="")) == [7]
