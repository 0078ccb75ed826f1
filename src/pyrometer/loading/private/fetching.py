"""Timing around the fetcher of a DataLoader, which calls the dataset and then the collate function.

Nothing that the user can see is replaced: not the dataset, its class, or what `get_worker_info()` says. In a worker, the place
where the fetcher is made (`_DatasetKind.create_fetcher`) is exchanged in that process only; in the main process the fetcher of one
iterator is exchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Fetch: TypeAlias = Callable[[Any], Any]
Wrap: TypeAlias = Callable[[Fetch], Fetch]


def missing() -> list[str]:
    """What this torch lacks; empty when everything works."""
    import torch.utils.data

    kind = getattr(torch.utils.data, "_DatasetKind", None)
    if not callable(getattr(kind, "create_fetcher", None)):
        return ["no place where fetchers are made: what a batch costs inside of workers cannot be timed"]
    return []


def wrap_fetchers(wrap: Wrap) -> None:
    """Wrap `fetch` of every fetcher that this process makes from now on; for worker processes, which end with their loader."""
    import torch.utils.data

    kind: Any = torch.utils.data._DatasetKind  # noqa: SLF001 - see `missing`
    create = kind.create_fetcher

    def create_wrapped(*args: Any) -> Any:
        fetcher = create(*args)
        fetcher.fetch = wrap(fetcher.fetch)
        return fetcher

    kind.create_fetcher = staticmethod(create_wrapped)


def wrap_fetcher_of(iterator: Any, wrap: Wrap) -> bool:
    """Wrap `fetch` of an iterator that loads in this process; False when it has no fetcher that we know."""
    fetcher = getattr(iterator, "_dataset_fetcher", None)
    if fetcher is None:
        return False
    fetcher.fetch = wrap(fetcher.fetch)
    return True
