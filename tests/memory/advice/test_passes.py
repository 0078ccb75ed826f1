"""Rules about whole passes: checkpointing, micro-batches, precision, padding, offloading. Each is applied, and keeps its word."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
import torch
from torch import nn

from pyrometer.memory.advice.case import Case
from pyrometer.memory.advice.rules.checkpointing import checkpointing
from pyrometer.memory.advice.rules.micro_batches import micro_batches
from pyrometer.memory.advice.rules.offloading import offloading
from pyrometer.memory.advice.rules.padding import padding
from pyrometer.memory.advice.rules.precision import autocast, low_precision_parameters
from pyrometer.workload.changes.results import results_of
from pyrometer.workload.inference import Inference
from pyrometer.workload.training import Training


def gradients(work):
    step = results_of(work)[0]
    return torch.cat([value.flatten().float() for name, value in sorted(step.items())])


def test_checkpointing_lowers_a_peak_of_activations(deep, keeps_its_word):
    advice = keeps_its_word(checkpointing, deep(), deep(checkpointed=True), "activation-checkpointing", 0.02)
    assert torch.equal(gradients(deep()), gradients(deep(checkpointed=True)))
    assert "blocks.0, blocks.1, blocks.2, blocks.3" in advice.sketch
    assert "pyrometer memory TARGET --plan" in advice.sketch


def test_checkpointing_is_not_advised_twice(deep, advice_of):
    assert advice_of(checkpointing, deep(checkpointed=True)) == []


def test_a_peak_in_the_optimizer_suppresses_what_lowers_activations(wide, case_of):
    case = case_of(wide())
    for rule in (checkpointing, micro_batches, autocast):
        assert list(rule(case)) == []
    notes = [note for note in case.notes if "falls in optimizer" in note]
    assert len(notes) == 3
    assert notes[0].startswith("activation checkpointing would not lower the peak")


@pytest.mark.slow
def test_micro_batches_lower_a_peak_of_activations(deep, keeps_its_word):
    split = deep(batch=lambda x, y: list(zip(x.chunk(4), y.chunk(4), strict=True)), accumulate=4)
    keeps_its_word(micro_batches, deep(), split, "micro-batching", 0.02)
    assert torch.allclose(gradients(deep()), gradients(split), rtol=1e-4, atol=1e-7)


def test_a_single_sample_is_not_split(deep, advice_of):
    assert advice_of(micro_batches, deep(batch=lambda x, y: [(x[:1], y[:1])])) == []


def test_batch_norm_is_named_as_what_micro_batches_change(advice_of):
    model = nn.Sequential(nn.Conv1d(2, 16, 3), nn.BatchNorm1d(16), nn.Flatten(), nn.Linear(16 * 62, 4))
    batch = torch.randn(16, 2, 64), torch.randint(4, (16,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    [advice] = advice_of(micro_batches, Training(model, nn.CrossEntropyLoss(), optimizer, [batch]))
    assert "BatchNorm1d" in advice.effect


def test_autocast_halves_activations(deep, keeps_its_word, tensor_peak):
    advice = keeps_its_word(
        autocast, deep(), deep(amp="bfloat16"), "bf16-autocast", 0.01, measured=tensor_peak
    )
    assert "scratch memory" in advice.effect
    plain, low = gradients(deep()), gradients(deep(amp="bfloat16"))
    assert float((plain - low).norm() / plain.norm()) < 0.02


def test_autocast_is_not_advised_twice(deep, advice_of):
    assert advice_of(autocast, deep(amp="bfloat16")) == []


def test_bfloat16_parameters_halve_a_training(wide, keeps_its_word):
    def after(advice):
        work = wide()
        model = work.parts.model
        exec(advice.sketch, {"model": model, "torch": torch})
        batch = tuple(part.to(torch.bfloat16) for part in work.batches[0])
        return Training(model, work.parts.loss, torch.optim.AdamW(model.parameters(), lr=1e-3), [batch])

    keeps_its_word(low_precision_parameters, wide(), after, "bf16-parameters", 0.01)


def test_bfloat16_parameters_halve_an_inference_and_round_its_results(keeps_its_word, tensor_peak):
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 32)), torch.randn(16, 128)
    low = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 32))
    low.load_state_dict(model.state_dict())
    after = Inference(low.to(torch.bfloat16), x.to(torch.bfloat16))
    before = Inference(model, x)
    keeps_its_word(low_precision_parameters, before, after, "bf16-parameters", 0.01, measured=tensor_peak)
    with torch.no_grad():
        exact, rounded = model(x), low(x.to(torch.bfloat16)).float()
    assert float((exact - rounded).norm() / exact.norm()) < 0.02


def test_bfloat16_parameters_are_not_advised_twice(advice_of):
    work = Inference(nn.Linear(64, 64).to(torch.bfloat16), torch.randn(4, 64, dtype=torch.bfloat16))
    assert advice_of(low_precision_parameters, work) == []


class Masked(nn.Module):
    """Means over real positions of a network of positions."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 16))

    def forward(self, x, mask):
        weights = mask.unsqueeze(-1).float()
        return (self.inner(x) * weights).sum(1) / weights.sum(1)


def padded(real, length=64):
    torch.manual_seed(0)
    x = torch.randn(8, length, 16)
    mask = (torch.arange(length) < real).expand(8, length).contiguous()
    return Inference(Masked(), {"x": x, "mask": mask}, mask="mask")


def test_padding_is_worth_what_computing_with_it_costs(keeps_its_word):
    before = padded(real=16)
    after = Inference(
        before.model,
        {"x": before.inputs["x"][:, :16].contiguous(), "mask": before.inputs["mask"][:, :16].contiguous()},
        mask="mask",
    )
    advice = keeps_its_word(padding, before, after, "no-padding", 0.02)
    assert "75.0 % of the positions are padding" in advice.why
    with before.open() as long, after.open() as short:
        assert torch.allclose(long.step(long.prepare()), short.step(short.prepare()), atol=1e-6)


@pytest.mark.parametrize("real", [64, 61])
def test_little_padding_is_no_matter(real, advice_of):
    assert advice_of(padding, padded(real)) == []


def test_without_a_mask_padding_is_unknown(advice_of, deep):
    assert advice_of(padding, deep()) == []


@contextlib.contextmanager
def away_from_the_allocator():
    """Saved tensors outside of what torch's allocator counts, as they are on the host beside a GPU."""

    def pack(tensor):
        return tensor.detach().flatten().numpy().tobytes(), tensor.shape, tensor.dtype

    def unpack(packed):
        raw, shape, dtype = packed
        return torch.frombuffer(bytearray(raw), dtype=dtype).clone().view(shape)

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield


def test_offloading_frees_what_waits_between_the_passes(deep, profiled, peak):
    before, after = deep(), deep()

    def loss(model, batch):
        with away_from_the_allocator():
            return before.parts.loss(model(batch[0]), batch[1])

    after.parts = after.parts._replace(loss=loss)
    on_gpu = msgspec.structs.replace(profiled(before), device="cuda:0")
    [advice] = offloading(Case(on_gpu, before, time_limit_s=300))
    saved = peak(before) - peak(after)
    assert abs(advice.saves_bytes - saved) <= 0.1 * saved
    assert torch.allclose(gradients(before), gradients(after))


def test_offloading_is_no_use_on_the_host(deep, advice_of):
    assert advice_of(offloading, deep()) == []
