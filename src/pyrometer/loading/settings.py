"""The settings of a DataLoader that decide how fast it is."""

from __future__ import annotations

from typing import Annotated

import msgspec

from pyrometer.errors import InputError
from pyrometer.record import Record, doc

DEFAULT_PREFETCH = 2


class LoaderSettings(Record, frozen=True, kw_only=True):
    """The settings that may change without changing which batches come, and in which order."""

    num_workers: Annotated[int, doc("worker processes; 0 loads in the training process itself")] = 0
    prefetch_factor: Annotated[int | None, doc("batches ahead per worker; null without workers")] = None
    pin_memory: Annotated[bool, doc("whether batches are copied to pinned memory")] = False
    persistent_workers: Annotated[bool, doc("whether the workers outlive an epoch")] = False

    def __post_init__(self) -> None:
        if self.num_workers < 0:
            raise InputError(f"num_workers: got {self.num_workers}; legal are 0 and above")
        if self.prefetch_factor is not None and self.prefetch_factor < 1:
            raise InputError(f"prefetch_factor: got {self.prefetch_factor}; legal are 1 and above")

    @property
    def capacity(self) -> int:
        """Batches that workers may have made before they are asked for."""
        return self.num_workers * (self.prefetch_factor or 0)

    @property
    def label(self) -> str:
        """In words, for tables.

        >>> LoaderSettings(num_workers=4, prefetch_factor=2, persistent_workers=True).label
        '4 workers, prefetch 2, persistent'
        """
        if not self.num_workers:
            return "no workers" + (", pinned" if self.pin_memory else "")
        parts = [
            f"{self.num_workers} worker" + ("s" if self.num_workers > 1 else ""),
            f"prefetch {self.prefetch_factor}",
            *(["pinned"] if self.pin_memory else []),
            *(["persistent"] if self.persistent_workers else []),
        ]
        return ", ".join(parts)

    @property
    def keywords(self) -> str:
        """The arguments to write in the call of DataLoader.

        >>> LoaderSettings(num_workers=2, prefetch_factor=4).keywords
        'num_workers=2, prefetch_factor=4'
        """
        given = [f"num_workers={self.num_workers}"]
        if self.num_workers:
            given.append(f"prefetch_factor={self.prefetch_factor}")
        given += [f"{name}=True" for name in ("pin_memory", "persistent_workers") if getattr(self, name)]
        return ", ".join(given)

    def with_workers(self, num_workers: int) -> LoaderSettings:
        """The same with another number of workers; what needs workers goes with the last of them.

        >>> LoaderSettings().with_workers(3).prefetch_factor, LoaderSettings(num_workers=1).with_workers(0).label
        (2, 'no workers')
        """
        return msgspec.structs.replace(
            self,
            num_workers=num_workers,
            prefetch_factor=(self.prefetch_factor or DEFAULT_PREFETCH) if num_workers else None,
            persistent_workers=self.persistent_workers and num_workers > 0,
        )
