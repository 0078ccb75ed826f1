"""A DataLoader: its settings, and copies of it with others."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch.utils.data import DataLoader

from pyrometer.loading.settings import DEFAULT_PREFETCH, LoaderSettings


def settings_of(loader: DataLoader[Any]) -> LoaderSettings:
    """Read the settings of a loader.

    >>> settings_of(DataLoader([1, 2, 3], num_workers=2)).label
    '2 workers, prefetch 2'
    """
    workers = loader.num_workers
    return LoaderSettings(
        num_workers=workers,
        prefetch_factor=(loader.prefetch_factor or DEFAULT_PREFETCH) if workers else None,
        pin_memory=bool(loader.pin_memory),
        persistent_workers=bool(loader.persistent_workers),
    )


def with_settings(loader: DataLoader[Any], settings: LoaderSettings) -> DataLoader[Any]:
    """A loader of the same class over the same dataset, sampler, generator and collate, with other settings.

    A shallow copy, not a new call of the class: subclasses take other arguments, and keep attributes of their own.

    >>> with_settings(DataLoader([1, 2, 3]), LoaderSettings(num_workers=1, prefetch_factor=4)).prefetch_factor
    4
    """
    other = copy.copy(loader)
    # DataLoader refuses to set some of them as attributes, which protects a loader in use; this one is not yet.
    vars(other).update(
        num_workers=settings.num_workers,
        prefetch_factor=settings.prefetch_factor if settings.num_workers else None,
        pin_memory=settings.pin_memory,
        persistent_workers=settings.persistent_workers and settings.num_workers > 0,
        timeout=loader.timeout if settings.num_workers else 0,
        _iterator=None,
    )
    if not settings.num_workers:
        other.multiprocessing_context = None
    return other


def start_method(loader: DataLoader[Any]) -> str:
    """How the loader starts its workers: fork, forkserver or spawn."""
    context: Any = loader.multiprocessing_context or torch.multiprocessing.get_context()
    return str(context.get_start_method())


def epoch_batches(loader: DataLoader[Any]) -> int | None:
    """Batches of an epoch; `None` where the loader cannot tell.

    >>> epoch_batches(DataLoader(range(10), batch_size=4))
    3
    """
    if isinstance(loader.dataset, torch.utils.data.IterableDataset):
        return None  # its length is a promise that nothing checks, and DataLoader warns when it is broken
    try:
        return len(loader)
    except (TypeError, NotImplementedError):
        return None
