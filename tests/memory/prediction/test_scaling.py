"""Laws of growth hold at sizes that were never rehearsed."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.errors import InputError
from pyrometer.memory.prediction.growth import grow
from pyrometer.memory.prediction.predict import predict_memory
from pyrometer.memory.prediction.scaling import in_words, laws_of, scaling_laws
from pyrometer.memory.prediction.settings import Settings


@pytest.fixture(scope="module")
def growth(tokens):
    """Rehearsed however long it takes: on a busy machine the time for sequences would be up."""
    return grow(tokens(), Settings(), time_limit_s=math.inf)


@pytest.mark.slow
def test_the_peak_at_other_sizes_is_what_a_rehearsal_there_finds(tokens, growth):
    for batch, length in ((64, 100), (1, 5)):
        memory = predict_memory(tokens(), batch=batch, sequence=length)
        peak = growth.peak(batch, length)
        assert peak.nbytes == memory.peak_bytes
        assert growth.lives.ledger(growth.sizes(batch, length), peak.event) == memory.ledger_bytes


@pytest.mark.slow
def test_each_category_has_its_law_and_its_remedy(growth):
    laws = {law.category: law for law in laws_of(growth)}
    assert "does not grow" in laws["parameters"].law
    assert "does not grow" in laws["optimizer"].law
    assert laws["inputs"].coefficients == {"B·T": pytest.approx(16.0)}
    assert laws["activations"].law.startswith("grows with B·T: ")
    assert "checkpointing" in laws["activations"].remedy
    assert laws["peak"].remedy is None
    # What temporaries are, and so what the peak is made of, may change with the size.
    assert all(laws[name].worst_error < 1e-6 for name in set(laws) - {"temporaries", "peak"})
    assert laws["peak"].worst_error < 0.1


def test_without_a_sequence_only_the_batch_counts(mlp):
    laws = {law.category: law for law in scaling_laws(mlp(), time_limit_s=math.inf)}
    assert set(laws["activations"].coefficients) <= {"1", "B"}
    assert laws["activations"].worst_error == 0


@pytest.mark.slow
def test_a_loop_over_the_sequence_is_fitted_by_totals(stepping):
    laws = {law.category: law for law in scaling_laws(stepping, time_limit_s=math.inf)}
    assert "B·T" in laws["activations"].coefficients
    assert laws["activations"].worst_error < 0.05
    assert laws["parameters"].law.startswith("does not grow")


def test_a_model_of_one_length_is_told_apart():
    class Fixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8 * 12, 4)

        def forward(self, x):
            return self.layer(x.flatten(1))

    found = grow(pm.Inference(Fixed(), torch.randn(4, 12, 8)), Settings(), time_limit_s=math.inf)
    assert found.sequence is None
    assert "may take only 12" in found.notes[-1]


def test_a_sequence_is_left_out_when_time_is_up(tokens):
    ticks = iter(range(0, 10**6, 10))
    found = grow(tokens(), Settings(), time_limit_s=15, clock=lambda: next(ticks))
    assert found.sequence is None
    assert "time was up" in found.notes[-1]


def test_inputs_without_a_batch_are_refused():
    with pytest.raises(InputError, match="batch: its dimension"):
        grow(pm.Inference(nn.Identity(), torch.tensor(1.0)), Settings())


def test_laws_are_told_in_words():
    assert in_words({"1": 2048.0}, 8, 16) == "does not grow: 2.00 KiB"
    assert in_words({"1": 1024.0, "B": 1024.0}, 8, 16) == "grows with B: 1.00 KiB per sample, beside 1.00 KiB"
    assert "pair of positions" in in_words({"B·T²": 4.0}, 8, 16)


def test_no_term_is_told_that_no_allocation_has():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.head = nn.Embedding(300, 32), nn.Linear(32, 300, bias=False)
            self.head.weight = self.words.weight

        def forward(self, ids):
            return self.head(self.words(ids)).flatten(0, 1)

    model, ids = Tied(), torch.randint(0, 300, (8, 32))
    optimizer = torch.optim.AdamW(model.parameters())
    work = pm.Training(
        model, lambda output, y: nn.functional.cross_entropy(output, y.flatten()), optimizer, [(ids, ids)]
    )
    for law in scaling_laws(work, time_limit_s=math.inf):
        assert not {"T²", "B·T²"} & set(law.coefficients), law
        assert law.worst_error < 0.03


def test_a_sequence_that_may_be_either_side_is_refused():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    work = pm.Inference(layer, torch.randn(4, 16, 16))
    with pytest.raises(InputError, match=r"ambiguous in src \[4, 16, 16\].*dims="):
        predict_memory(work, sequence=32)
    assert predict_memory(work, sequence=32, dims={"src": {0: "B", 1: "T"}}).peak_bytes


@pytest.mark.slow
def test_checkpointing_that_lowers_nothing_is_told(tokens):
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    x = torch.randn(4, 8, 16)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    work = pm.Training(layer, nn.functional.mse_loss, optimizer, [(x, x)])
    assert "lowers nothing" in predict_memory(work, checkpoint="every 2").notes[-1]
    assert not predict_memory(tokens(batch=16), checkpoint="every").notes
