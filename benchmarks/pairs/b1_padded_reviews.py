"""Sentiment of short reviews with a small transformer encoder."""

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

import pyrometer as pm

VOCABULARY = 4000
MAX_TOKENS = 192
PAD = 0


class Reviews(Dataset):
    def __init__(self, count: int = 512) -> None:
        generator = torch.Generator().manual_seed(3)
        lengths = (torch.randn(count, generator=generator).mul(0.5).exp() * 22).long().clamp(5, 64)
        self.tokens = [torch.randint(1, VOCABULARY, (n,), generator=generator) for n in lengths.tolist()]
        self.stars = torch.randint(5, (count,), generator=generator)

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.tokens[index], self.stars[index]


def collate_fixed(samples: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    tokens = torch.full((len(samples), MAX_TOKENS), PAD)
    for row, (sample, _) in zip(tokens, samples, strict=True):
        row[: len(sample)] = sample
    return tokens, torch.stack([stars for _, stars in samples])


def collate_longest(samples: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    tokens = pad_sequence([sample for sample, _ in samples], batch_first=True, padding_value=PAD)
    return tokens, torch.stack([stars for _, stars in samples])


class Sentiment(nn.Module):
    def __init__(self, width: int = 96, layers: int = 2) -> None:
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, width, padding_idx=PAD)
        self.position = nn.Embedding(MAX_TOKENS, width)
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, 5)

    def forward(self, tokens: Tensor) -> Tensor:
        padding = tokens == PAD
        hidden = self.token(tokens) + self.position.weight[: tokens.shape[1]]
        hidden = self.encoder(hidden, src_key_padding_mask=padding)
        kept = (~padding).unsqueeze(-1)
        return self.head((hidden * kept).sum(1) / kept.sum(1))


def train_with(collate) -> pm.Training:
    torch.manual_seed(0)
    model = Sentiment()
    loader = partial(DataLoader, Reviews(), batch_size=16, shuffle=False, drop_last=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    return pm.Training(model, nn.CrossEntropyLoss(), optimizer, loader(collate_fn=collate), unit="reviews")


def slow() -> pm.Training:
    return train_with(collate_fixed)


def fast() -> pm.Training:
    return train_with(collate_longest)
