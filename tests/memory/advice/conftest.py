"""Cases for single rules, and the truth that a prediction is held against: the allocator's own account."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from pyrometer.memory.advice.case import Case
from pyrometer.memory.ledger.reading import ledger_of, phase_at
from pyrometer.memory.profile import MemoryProfile
from pyrometer.memory.recording.allocator import record_allocator
from pyrometer.memory.recording.steps import record_steps
from pyrometer.workload.training import Training


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for each other take longer than what these small programs compute."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def profiled():
    """What the rules read of a profile, from one recording."""

    def profile(work):
        log = record_steps(work)
        phase = phase_at(log, log.peak_event)
        return MemoryProfile(
            name=work.name,
            device="cpu",
            peak_bytes=log.peak_bytes,
            peak_phase=phase.name if phase else None,
            ledger_bytes=ledger_of(log.live_at(log.peak_event)),
        )

    return profile


@pytest.fixture
def case_of(profiled):
    return lambda work: Case(profiled(work), work, time_limit_s=300)


@pytest.fixture
def advice_of(case_of):
    """What one rule says about a work; and nothing where it says nothing."""
    return lambda rule, work: list(rule(case_of(work)))


@pytest.fixture
def peak():
    return lambda work: record_allocator(work, steps=2).peak_bytes


@pytest.fixture
def tensor_peak():
    """Without what operators take for themselves."""
    return lambda work: record_steps(work).peak_bytes


@pytest.fixture
def keeps_its_word(advice_of, peak):
    """The only advice of a rule, after it was found to save what it says, to a tenth."""

    def check(rule, before, after, slug, tolerance=0.1, *, measured=peak):
        advice = next(one for one in advice_of(rule, before) if one.slug == slug)
        saved = measured(before) - measured(after(advice) if callable(after) else after)
        assert advice.gain is not None
        assert saved > 0
        assert abs(advice.saves_bytes - saved) <= tolerance * saved, (advice.saves_bytes, saved)
        return advice

    return check


@pytest.fixture
def wide():
    """A training whose peak is in the optimizer: many weights, few samples."""

    def make(kind=torch.optim.AdamW, **options):
        torch.manual_seed(0)
        model = nn.Sequential(
            *[nn.Sequential(nn.Linear(128, 128), nn.ReLU()) for _ in range(6)], nn.Linear(128, 8)
        )
        batch = torch.randn(4, 128), torch.randn(4, 8)
        return Training(model, mean_absolute, kind(model.parameters(), **{"lr": 1e-3} | options), [batch])

    return make


@pytest.fixture
def deep():
    """A training whose peak is made of activations: few weights, many samples."""

    def make(checkpointed=False, batch=None, **settings):
        torch.manual_seed(0)
        model = Deep(checkpointed)
        x, y = torch.randn(8, 64, 32), torch.randint(8, (8, 64))
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
        return Training(model, cross_entropy, optimizer, batch(x, y) if batch else [(x, y)], **settings)

    return make


class Block(nn.Module):
    """As in a transformer, without attention."""

    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(32), nn.Linear(32, 128), nn.Linear(128, 32)

    def forward(self, x):
        return x + self.down(functional.gelu(self.up(self.norm(x))))


class Deep(nn.Module):
    """Repeated blocks and a head."""

    def __init__(self, checkpointed):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(4))
        self.head = nn.Linear(32, 8)
        self.checkpointed = checkpointed

    def forward(self, x):
        from torch.utils.checkpoint import checkpoint

        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return self.head(x)


def cross_entropy(output, target):
    return functional.cross_entropy(output.flatten(0, -2), target.flatten())


def mean_absolute(output, target):
    return (output - target).abs().mean()
