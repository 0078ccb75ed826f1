"""Text as bytes: windows of a long text, or one sentence per sequence."""

from __future__ import annotations

import re
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.data import Dataset

TEXT = Path(__file__).with_name("opticks.txt")
VOCABULARY = 256  # every byte is a token


def encode(text: str) -> Tensor:
    """Bytes of the text, one token each."""
    return torch.tensor(list(text.encode()), dtype=torch.long)


def decode(tokens: Tensor) -> str:
    """The text of the tokens; bytes that are no UTF-8 become a replacement character."""
    return bytes(tokens.tolist()).decode(errors="replace")


def read_split(path: Path = TEXT, held_out: float = 0.1) -> tuple[str, str]:
    """The text for training, and its last part for validation."""
    text = path.read_text(encoding="utf-8")
    cut = int(len(text) * (1 - held_out))
    return text[:cut], text[cut:]


class Windows(Dataset[tuple[Tensor, Tensor]]):
    """Consecutive windows of `context` tokens, each with the tokens that follow."""

    def __init__(self, text: str, context: int) -> None:
        self.tokens = encode(text)
        self.context = context

    def __len__(self) -> int:
        return (len(self.tokens) - 1) // self.context

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        start = index * self.context
        window = self.tokens[start : start + self.context + 1]
        return window[:-1], window[1:]


class Sentences(Dataset[Tensor]):
    """The sentences of a text, each cut to `context + 1` tokens."""

    def __init__(self, text: str, context: int) -> None:
        sentences = re.split(r"(?<=[.;:?!])\s+", text)
        self.sentences = [encode(" ".join(s.split()))[: context + 1] for s in sentences if len(s) >= 8]

    def __len__(self) -> int:
        return len(self.sentences)

    def __getitem__(self, index: int) -> Tensor:
        return self.sentences[index]


def pad(sentences: list[Tensor]) -> dict[str, Tensor]:
    """Collate sentences into `tokens` and `targets`, padded to the longest, with a `mask` of what is real."""
    padded = torch.nn.utils.rnn.pad_sequence(sentences, batch_first=True)
    lengths = torch.tensor([len(s) - 1 for s in sentences])
    mask = torch.arange(padded.shape[1] - 1) < lengths[:, None]
    return {"tokens": padded[:, :-1], "targets": padded[:, 1:], "mask": mask}
