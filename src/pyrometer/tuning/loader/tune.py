"""Tuning a loader: search its settings by measuring, prove the best of them in pairs, and say what to write."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader

from pyrometer.bench.stage import Progress
from pyrometer.errors import InputError
from pyrometer.evidence.options import silent
from pyrometer.loading.figures import require_count, require_positive
from pyrometer.quantity import Bytes, Seconds
from pyrometer.tuning.loader.consumers import open_consumer
from pyrometer.tuning.loader.limits import Limits
from pyrometer.tuning.loader.record import LoaderTuning
from pyrometer.tuning.loader.tuner import Tuner
from pyrometer.workload.training import Training

DEFAULT_BUDGET_S = 30.0
DEFAULT_MARGIN = 0.05


def tune_loader(
    loader_or_dataset: Any,
    *,
    step_s: Seconds | None = None,
    work: Training | None = None,
    max_memory_bytes: Bytes | None = None,
    max_workers: int | None = None,
    budget_s: Seconds = DEFAULT_BUDGET_S,
    margin: float = DEFAULT_MARGIN,
    progress: Progress | None = None,
    **loader_arguments: Any,
) -> LoaderTuning:
    """Find the number of workers and the queue that a loader needs, measured on this machine and proved in pairs.

    The loader, its sampler and its generators are left alone; workers are ended, also on Ctrl-C. More workers are not always
    faster: the smallest setting is chosen that is as fast as the fastest, and the loader stays as it is unless that is proved.

    Args:
        loader_or_dataset: a DataLoader, or a dataset with the arguments of a DataLoader.
        step_s: time of a training step without its data, spent waiting as for an accelerator.
        work: the training that takes the batches; its state is restored. Without either, the loader is tuned for throughput.
        max_memory_bytes: for the workers and their batches together.
        max_workers: by default four per usable CPU and at least 16, at most 64.
        budget_s: no turn is begun after so many seconds.
        margin: a smaller difference is none.
        progress: told how far it is, between turns.
        **loader_arguments: for a dataset: `batch_size`, `collate_fn`, …

    Raises:
        InputError: no loader or dataset, an illegal figure, an empty loader, or workers that cannot be started.
        UserProgramError: the loader or the training failed.

    >>> tuning = tune_loader(list(range(64)), batch_size=8, max_workers=0, budget_s=1)
    >>> tuning.best.num_workers, tuning.gain is None
    (0, True)
    """
    loader = _loader_of(loader_or_dataset, loader_arguments)
    _require_figures(budget_s, margin, max_workers, max_memory_bytes)
    with open_consumer(step_s, work) as consumer:
        limits = Limits.found(max_memory_bytes)
        return Tuner(loader, consumer, budget_s, margin, limits, max_workers, progress or silent).tuned()


def _loader_of(given: Any, arguments: dict[str, Any]) -> DataLoader[Any]:
    if isinstance(given, DataLoader):
        if arguments:
            raise InputError(
                f"{next(iter(arguments))}: a DataLoader has its own; arguments go with a dataset"
            )
        return given
    if not hasattr(given, "__getitem__") and not hasattr(given, "__iter__"):
        raise InputError(
            f"loader: got {type(given).__name__}; it must be a DataLoader, or a dataset with batch_size=… beside it"
        )
    try:
        return DataLoader(given, **arguments)
    except (TypeError, ValueError) as error:
        raise InputError(f"DataLoader of this dataset: {error}") from error


def _require_figures(
    budget_s: Seconds, margin: float, max_workers: int | None, max_memory_bytes: Bytes | None
) -> None:
    require_positive("budget_s", budget_s, f"{DEFAULT_BUDGET_S:g}")
    require_positive("margin", margin, f"{DEFAULT_MARGIN:g}")
    if margin >= 1:
        raise InputError(
            f"margin: got {margin}; legal is above 0 and below 1, for example {DEFAULT_MARGIN:g}"
        )
    if max_workers is not None:
        require_count("max_workers", max_workers, least=0)
    if max_memory_bytes is not None:
        require_positive("max_memory_bytes", max_memory_bytes, "2 * 2**30")
