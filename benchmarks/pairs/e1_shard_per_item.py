"""Keyword spotting from precomputed log-mel features that lie in compressed shards on disk."""

import atexit
import shutil
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

import pyrometer as pm

CLIPS_PER_SHARD = 64
SHARDS = 4


def write_shards() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="keywords-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    random = np.random.default_rng(2)
    for shard in range(SHARDS):
        features = random.normal(size=(CLIPS_PER_SHARD, 40, 64)).astype(np.float16)
        words = random.integers(0, 12, CLIPS_PER_SHARD)
        np.savez_compressed(folder / f"{shard:03}.npz", features=features, words=words)
    return folder


class Keywords(Dataset):
    def __init__(self, folder: Path) -> None:
        self.shards = sorted(folder.glob("*.npz"))

    def __len__(self) -> int:
        return len(self.shards) * CLIPS_PER_SHARD

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        shard, row = divmod(index, CLIPS_PER_SHARD)
        content = np.load(self.shards[shard])
        return torch.from_numpy(content["features"][row].astype(np.float32)), int(content["words"][row])


class KeywordsInMemory(Keywords):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        loaded = [np.load(shard) for shard in self.shards]
        self.features = np.concatenate([content["features"] for content in loaded])
        self.words = np.concatenate([content["words"] for content in loaded])

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return torch.from_numpy(self.features[index].astype(np.float32)), int(self.words[index])


class Spotter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv1d(40, 64, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(64, 96, 5, padding=2),
            nn.ReLU(),
        )
        self.head = nn.Linear(96, 12)

    def forward(self, mels: Tensor) -> Tensor:
        return self.head(self.convolutions(mels).mean(-1))


def training(dataset: type[Keywords]) -> pm.Training:
    torch.manual_seed(0)
    model = Spotter()
    loader = DataLoader(
        dataset(write_shards()), batch_size=16, shuffle=True, generator=torch.Generator().manual_seed(4)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    return pm.Training(model, nn.CrossEntropyLoss(), optimizer, loader, unit="clips")


def slow() -> pm.Training:
    return training(Keywords)


def fast() -> pm.Training:
    return training(KeywordsInMemory)
