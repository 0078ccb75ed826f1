from __future__ import annotations

import pytest
import torch
from torch import nn

import pyrometer as pm

FIRES = {
    "by its module": "import torch\nmodel = torch.nn.DataParallel(model).cuda()  # <-",
    "nn": "from torch import nn\nmodel = nn.DataParallel(model, device_ids=[0, 1])  # <-",
    "by name": "from torch.nn import DataParallel as DP\nif many:\n    model = DP(model)  # <-",
}

SILENT = {
    "a check of its type": "from torch import nn\nif isinstance(model, nn.DataParallel):\n    model = model.module",
    "names of a checkpoint": "import torch\ndef load(net, state):\n    net = torch.nn.DataParallel(net)\n    net.load_state_dict(state)",
    "a part of what is wrapped": "from torch import nn\nif isinstance(model, nn.DataParallel):\n    head = nn.DataParallel(model.head)",
    "distributed": "from torch.nn.parallel import DistributedDataParallel\nmodel = DistributedDataParallel(model)",
    "a class of the user's": "import torch\nclass DataParallel:\n    pass\nmodel = DataParallel()",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_it_fires(lines, marked, text):
    assert lines("PYR612", text) == marked(text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_it_is_silent(lines, text):
    assert lines("PYR612", text) == []


def test_a_test_may_use_it(lines):
    text = "import torch\ndef test_it():\n    torch.nn.DataParallel(model)"
    assert lines("PYR612", text, "tests/test_model.py") == []


def test_it_is_found_in_a_program_and_the_model_without_it_computes_the_same(findings, observe):
    model = nn.Linear(4, 2)
    x = torch.randn(3, 4)
    wrapped = nn.DataParallel(model)
    (finding,) = findings("PYR612", observe(pm.Inference(wrapped, x), "program"))
    assert "copies it to every device" in finding.message
    assert findings("PYR612", observe(pm.Inference(model, x), "program")) == []
    assert torch.equal(wrapped(x), model(x))
