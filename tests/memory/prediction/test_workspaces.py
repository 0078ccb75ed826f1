"""What operators take for themselves, against what the allocator noted."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import pyrometer as pm
from pyrometer.memory.prediction import workspaces
from pyrometer.memory.prediction.predict import predict_memory
from pyrometer.memory.recording.allocator import record_allocator
from pyrometer.memory.recording.steps import record_steps


def assert_close(work, share=0.05):
    told, real = predict_memory(work).peak_bytes, record_allocator(work, steps=2).peak_bytes
    assert told == pytest.approx(real, rel=share)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Conv2d(32, 32, 3, padding=1), (8, 32, 16, 16)),
        (nn.Conv2d(3, 32, 3), (8, 3, 24, 24)),
        (nn.Conv2d(32, 64, 1), (8, 32, 16, 16)),
        (nn.Conv2d(32, 32, 3, groups=32), (8, 32, 16, 16)),
        (nn.Conv2d(8, 8, 3), (1, 8, 24, 24)),
        (nn.ConvTranspose2d(32, 32, 3), (8, 32, 16, 16)),
        (nn.ConvTranspose2d(16, 3, 4, 2, 1), (8, 16, 16, 16)),
        (nn.ConvTranspose2d(20, 24, 3), (8, 20, 16, 16)),
        (nn.ConvTranspose1d(32, 16, 4, 2, 1), (8, 32, 100)),
        (nn.Conv2d(24, 24, 3, groups=8), (8, 24, 16, 16)),
        (nn.Conv2d(32, 32, 3, groups=4), (8, 32, 16, 16)),
        (nn.Conv3d(16, 32, 3, 2), (8, 16, 8, 8, 8)),
        (nn.Conv1d(32, 32, 3), (8, 32, 200)),
        (nn.Conv2d(16, 16, 3).double(), (4, 16, 16, 16)),
        (nn.Conv2d(32, 32, 3, padding=1).bfloat16(), (8, 32, 16, 16)),
    ],
    ids=[
        "3x3",
        "image",
        "1x1",
        "depthwise",
        "one sample",
        "transposed",
        "transposed to an image",
        "transposed, no whole blocks",
        "transposed 1d",
        "odd groups",
        "groups",
        "strided 3d",
        "1d",
        "double",
        "bfloat16",
    ],
)
def test_convolutions(layer, shape):
    # Small parts depend on the number of threads.
    x = torch.randn(shape, dtype=layer.weight.dtype)
    model = nn.Sequential(layer, nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    assert_close(pm.Training(model, lambda output, _: output.sum(), optimizer, [(x, x)]), 0.15)
    assert_close(pm.Inference(model, x), 0.15)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_lstm(recurrent, dtype):
    assert_close(recurrent(batch=16, length=40, width=64, hidden=64, dtype=dtype))
    model = nn.LSTM(128, 64).to(dtype)
    assert_close(pm.Inference(model, torch.randn(30, 16, 128, dtype=dtype)), 0.1)


@pytest.mark.parametrize(("length", "heads", "inner"), [(24, 2, 64), (96, 8, 64), (24, 2, 512)])
def test_fused_encoder_layers_of_inference(length, heads, inner):
    layer = nn.TransformerEncoderLayer(64, heads, inner, batch_first=True)
    assert_close(pm.Inference(layer, torch.randn(8, length, 64)), 0.01)


@pytest.mark.parametrize("weights", [True, False])
def test_fused_attention_of_inference(weights):
    class Attending(nn.Module):
        def __init__(self):
            super().__init__()
            self.attend = nn.MultiheadAttention(64, 8, batch_first=True)

        def forward(self, x):
            return self.attend(x, x, x, need_weights=weights)

    assert_close(pm.Inference(Attending(), torch.randn(8, 96, 64)), 0.01)


def test_operators_without_a_row_need_none(mlp):
    work = mlp(loss=functional.l1_loss)
    memory = predict_memory(work)
    assert memory.peak_bytes == memory.tensor_peak_bytes
    assert memory.ledger_bytes["workspace"] == 0


def test_a_decoder_with_transposed_convolutions():
    model = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.ConvTranspose2d(16, 3, 4, 2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(8, 3, 32, 32)
    assert_close(pm.Training(model, functional.mse_loss, optimizer, [(x, x)]))
    assert_close(pm.Training(model, lambda output, _: output.sum(), optimizer, [(x, x)]))


def test_sparse_gradients_are_not_copied_because_they_are_watched():
    model = nn.Sequential(nn.Embedding(500, 32, sparse=True), nn.Linear(32, 8))
    ids = torch.randint(0, 500, (8, 12))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    work = pm.Training(model, lambda output, _: output.sum(), optimizer, [(ids, ids)])
    assert not [
        allocation
        for allocation in record_steps(work).allocations
        if allocation.origin.operator == "aten.clone.default"
    ]


class Diffusing(nn.Module):
    """A U-Net with group norms, a step down, a step up, and a connection across."""

    def __init__(self, width):
        super().__init__()
        self.into = nn.Conv2d(3, width, 3, padding=1)
        self.norm = nn.GroupNorm(4, width)
        self.down = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.middle = nn.Sequential(
            nn.GroupNorm(4, 2 * width), nn.SiLU(), nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        )
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.out = nn.Sequential(nn.GroupNorm(4, 2 * width), nn.SiLU(), nn.Conv2d(2 * width, 3, 3, padding=1))

    def forward(self, x):
        across = functional.silu(self.norm(self.into(x)))
        return self.out(torch.cat([self.up(self.middle(self.down(across))), across], 1))


@pytest.mark.parametrize("width", [16, 32])
def test_a_unet_under_autocast(width):
    model = Diffusing(width)
    x = torch.randn(4, 3, 32, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        work = pm.Training(model, functional.mse_loss, optimizer, [(x, x)], amp="bfloat16")
        assert predict_memory(work).tensor_peak_bytes == record_steps(work).peak_bytes
        assert_close(work)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize(
    ("read", "made", "size", "copies"),
    [
        (32, 32, 32, (2, 2)),
        (256, 64, 16, (1, 1)),
        (512, 512, 4, (1, 1)),
        (96, 96, 16, (2, 2)),
        (32, 128, 16, (2, 1)),
        (64, 256, 16, (2, 2)),
    ],
)
def test_threads_that_share_channels_out_reduce_no_copies(monkeypatch, read, made, size, copies):
    # As many as the allocator showed on a processor with AMX, and with ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16.
    monkeypatch.setattr(workspaces, "_BLOCK", 16)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    source, target = (torch.empty(4, channels, size, size).bfloat16() for channels in (read, made))
    weight = torch.empty(made, read, 3, 3).bfloat16()
    in_tiles = workspaces._copies_in_tiles(source, target, weight)
    assert (in_tiles, workspaces._copies_in_blocks(source, target, weight)) == copies
