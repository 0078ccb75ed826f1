"""Tuning a loader against trying out the whole grid: what was found, how good it is, and what it cost.

    python benchmarks/tune_loader.py [--budget 20] [--window 0.5] [--passes 3] [--case disk]

Every case is a dataset with known work. First `tune_loader` searches; then all numbers of workers of the grid are measured, in
several passes of random order, and the found setting with them. The ratio is the found setting's time per batch over the
grid's best: 1 is perfect. What repeats of one setting differ by is shown beside it: no ratio means more than that.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
import warnings
import zlib
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from pyrometer.hardware.cpu import usable_cpus
from pyrometer.loading.loader import settings_of
from pyrometer.loading.settings import LoaderSettings
from pyrometer.quantity import format_seconds, significant
from pyrometer.tuning.loader.consumers import open_consumer
from pyrometer.tuning.loader.running import TurnRunner
from pyrometer.tuning.loader.tune import tune_loader

GRID = (0, 1, 2, 3, 4, 6, 8, 12)


class Disk(Dataset[torch.Tensor]):
    """Samples that wait for a disk."""

    def __init__(self, wait_s: float) -> None:
        self._wait_s = wait_s

    def __len__(self) -> int:
        return 4000

    def __getitem__(self, index: int) -> torch.Tensor:
        """One sample."""
        time.sleep(self._wait_s)
        return torch.full((64,), float(index))


class Images(Dataset[torch.Tensor]):
    """Compressed files that are inflated, flipped and normalised."""

    def __init__(self, folder: Path, side: int = 160) -> None:
        self._folder, self._side = folder, side
        rng = np.random.default_rng(0)
        for index in range(64):
            pixels = rng.integers(0, 40, (3, side, side), dtype=np.uint8)
            (folder / f"{index}.z").write_bytes(zlib.compress(pixels.tobytes()))

    def __len__(self) -> int:
        return 4000

    def __getitem__(self, index: int) -> torch.Tensor:
        """One image."""
        raw = zlib.decompress((self._folder / f"{index % 64}.z").read_bytes())
        image = np.frombuffer(raw, dtype=np.uint8).reshape(3, self._side, self._side)
        pixels = np.ascontiguousarray(image[:, :, ::-1]).astype(np.float32)
        return torch.from_numpy((pixels - pixels.mean()) / pixels.std())


class Tiny(Dataset[torch.Tensor]):
    """Samples that are there already."""

    def __len__(self) -> int:
        return 20_000

    def __getitem__(self, index: int) -> torch.Tensor:
        """One sample."""
        return torch.full((8,), float(index))


def cases(folder: Path) -> dict[str, tuple[DataLoader[Any], float]]:
    """Loaders as users write them, and the step that they feed."""
    return {
        "disk, step 20 ms": (DataLoader(Disk(0.008), batch_size=8), 0.020),
        "disk, too many": (DataLoader(Disk(0.002), batch_size=8, num_workers=8), 0.020),
        "disk, throughput": (DataLoader(Disk(0.004), batch_size=8), 0.0),
        "images, step 5 ms": (DataLoader(Images(folder), batch_size=8), 0.005),
        "images, throughput": (DataLoader(Images(folder), batch_size=8, num_workers=8), 0.0),
        "tiny, 4 workers": (DataLoader(Tiny(), batch_size=16, num_workers=4), 0.0),
    }


def grid_times(
    loader: DataLoader[Any], step_s: float, loader_settings: LoaderSettings, window_s: float, passes: int
) -> dict[LoaderSettings, list[float]]:
    """Time per batch of every setting of the grid and of the found one, pass by pass."""
    settings = [*{*(settings_of(loader).with_workers(count) for count in GRID), loader_settings}]
    times: dict[LoaderSettings, list[float]] = defaultdict(list)
    coin = random.Random(0)
    with open_consumer(step_s, None) as consumer:
        runner = TurnRunner(loader, consumer, window_s, usable_cpus())
        for _ in range(passes):
            for one in coin.sample(settings, len(settings)):
                times[one].append(runner.run(one).batch_s)
    return times


def report(name: str, loader: DataLoader[Any], step_s: float, args: argparse.Namespace) -> None:
    tuning = tune_loader(loader, step_s=step_s, budget_s=args.budget)
    times = grid_times(loader, step_s, tuning.best, args.window, args.passes)
    typical = {settings: float(np.median(values)) for settings, values in times.items()}
    best = min(typical, key=lambda settings: typical[settings])
    spread = float(np.median([max(values) / min(values) for values in times.values()]))
    print(f"\n{name}: {tuning.sentence}")
    row = "  ".join(
        f"{settings.num_workers}: {format_seconds(typical[settings])}"
        for settings in sorted(typical, key=_order)
    )
    print(f"  grid (workers: time per batch)  {row}")
    print(
        f"  grid's best {best.label}; found {tuning.best.label}; ratio {significant(typical[tuning.best] / typical[best])} "
        f"(repeats differ by {significant(spread)}); {len(tuning.tried)} settings in {format_seconds(tuning.elapsed_s)}"
    )


def _order(settings: LoaderSettings) -> tuple[int, int]:
    return settings.num_workers, settings.capacity


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of each tuning")
    parser.add_argument("--window", type=float, default=0.5, help="seconds per point of the grid and pass")
    parser.add_argument("--passes", type=int, default=3, help="measurements of each point of the grid")
    parser.add_argument("--case", default="", help="only cases whose name contains this")
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="This DataLoader will create")
    with tempfile.TemporaryDirectory() as folder:
        for name, (loader, step_s) in cases(Path(folder)).items():
            if args.case in name:
                report(name, loader, step_s, args)


if __name__ == "__main__":
    main()
