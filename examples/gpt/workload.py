"""The GPT of this folder as Pyrometer targets: `pyrometer bench examples/gpt/workload.py:workload`."""

from __future__ import annotations

import torch
from data import VOCABULARY, Sentences, Windows, pad, read_split
from model import GPT, GPTConfig, adamw, next_token_loss
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

import pyrometer as pm


def workload() -> pm.Training:
    """The training step of `train.py`: 8 windows of 128 tokens."""
    torch.manual_seed(0)
    config = GPTConfig(vocabulary=VOCABULARY)
    text, _ = read_split()
    loader = DataLoader(
        Windows(text, config.context), batch_size=8, shuffle=True, drop_last=True, generator=seeded()
    )
    model = GPT(config)
    return pm.Training(
        model,
        next_token_loss,
        adamw(model, learning_rate=1e-3),
        loader,
        unit="tokens",
        per_step=8 * config.context,
        name="GPT training",
    )


def padded() -> pm.Training:
    """Whole sentences, padded to the longest of their batch: only the tokens under the mask are worth anything."""
    torch.manual_seed(0)
    config = GPTConfig(vocabulary=VOCABULARY, context=256)
    text, _ = read_split()
    loader = DataLoader(
        Sentences(text, config.context),
        batch_size=4,
        shuffle=True,
        drop_last=True,
        collate_fn=pad,
        generator=seeded(),
    )
    model = GPT(config)
    return pm.Training(
        model,
        masked_loss,
        adamw(model, learning_rate=1e-3),
        loader,
        unit="tokens",
        mask="mask",
        name="GPT training on padded sentences",
    )


def masked_loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """Mean cross-entropy over the real tokens.

    Padding is at the end, so that causal attention hides it from every real token and needs no mask of its own.
    """
    logits = model(batch["tokens"])
    mask = batch["mask"].flatten()
    return F.cross_entropy(logits.flatten(0, 1)[mask], batch["targets"].flatten()[mask])


def seeded() -> torch.Generator:
    """A fixed order of batches."""
    return torch.Generator().manual_seed(0)
