from __future__ import annotations

import pytest
import torch

PADDED = """
import torch
batch = tokenizer(texts, padding="max_length", max_length=128, return_tensors="pt")
model = torch.compile(model, dynamic=True)  # <-
"""

CONSTANT = """
import torch
PAD = "max_length"
batch = tokenizer(texts, padding=PAD)
@torch.compile(dynamic=True)  # <-
def f(x):
    return x
"""

LOADER = """
import torch
from torch.utils.data import DataLoader, TensorDataset


def f(x):
    return x.sin() * 2


def run():
    g = torch.compile(f, backend="eager")
    loader = DataLoader(TensorDataset(torch.arange(20.0).reshape(10, 2)), batch_size=4)
    outputs = []
    for (x,) in loader:
        outputs.append(g(x))
    return outputs
"""


@pytest.mark.parametrize(
    "source",
    [
        PADDED,
        PADDED.replace('padding="max_length", max_length=128', "pad_to_multiple_of=64"),
        CONSTANT,
    ],
)
def test_fixed_padding_beside_open_sizes(lines, marked, source):
    assert lines("PYR407", source) == marked(source)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(PADDED.replace(", dynamic=True", ""), id="not dynamic"),
        pytest.param(PADDED.replace(', padding="max_length", max_length=128', ""), id="not padded"),
        pytest.param(PADDED.replace('"max_length"', '"longest"'), id="padded to the longest"),
        pytest.param(PADDED + "\nother = tokenizer(texts, padding=True)\n", id="both"),
        pytest.param(
            "import torch\nconv = torch.nn.Conv2d(3, 3, 3, padding=1)\nm = torch.compile(conv, dynamic=True)\n",
            id="conv",
        ),
    ],
)
def test_near_misses_in_source(lines, source):
    assert lines("PYR407", source) == []


def test_a_fixed_length_needs_one_graph_without_dynamic(ran):
    fixed = """
    import torch


    def run():
        g = torch.compile(torch.sin, backend="eager")
        return [g(torch.nn.functional.pad(torch.ones(n), (0, 8 - n))) for n in (3, 5, 8)]
    """
    assert ran(fixed).report.graphs == 1
    assert ran(fixed).report.symbols == []


def test_the_last_batch_of_an_epoch_that_opened_the_batch_size(ran, findings):
    program = ran(LOADER)
    (finding,) = findings("PYR407", program.evidence)

    assert finding.where.line == program.line_of("loader = DataLoader")
    assert finding.message.startswith("Batches of 4 and a last one of 2")
    assert finding.advice.rewrite.endswith("drop_last=True)")
    assert finding.severity == "info"


def test_without_the_smaller_batch_there_is_one_graph(ran, findings):
    program = ran(LOADER)
    (finding,) = findings("PYR407", program.evidence)
    fixed = ran(program.source.replace(finding.advice.replaces, finding.advice.rewrite))

    assert (program.report.graphs, fixed.report.graphs) == (2, 1)
    assert findings("PYR407", fixed.evidence) == []
    assert all(map(torch.equal, fixed.output, program.output[:2]))


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(LOADER.replace("batch_size=4", "batch_size=5"), id="no remainder"),
        pytest.param(LOADER.replace("g(x)", "g(x.t().contiguous())"), id="another dimension"),
        pytest.param(LOADER.replace("g(x)", "g(torch.ones(len(outputs) + 4))"), id="sizes of its own"),
    ],
)
def test_near_misses_in_records(ran, findings, source):
    assert findings("PYR407", ran(source).evidence) == []
