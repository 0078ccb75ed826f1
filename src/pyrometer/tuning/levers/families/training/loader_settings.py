"""`num_workers`, `prefetch_factor`, `persistent_workers` and `pin_memory`: how a DataLoader makes its batches."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

from msgspec.structs import replace
from torch.utils.data import DataLoader

from pyrometer.hardware.cpu import read_cpu
from pyrometer.loading.loader import settings_of, with_settings
from pyrometer.loading.settings import LoaderSettings
from pyrometer.tuning.levers.batches import loader_of, over_loader
from pyrometer.tuning.levers.lever import Lever, Parameters, lever
from pyrometer.tuning.levers.subject import Subject
from pyrometer.tuning.loader.limits import REPEATED, Limits, repeats_itself
from pyrometer.tuning.loader.search import Space

_DEEPER = (4, 8)
_AT_MOST = 4
"""Numbers of workers that are tried."""


class _LoaderSetting(Lever):
    """A setting of the workload's DataLoader, in a copy of it; batches and their order must stay the same."""

    stage = "basic"
    place = "settings"
    kinds = frozenset({"training"})
    needs_workers: ClassVar[bool] = False

    def refuses(self, subject: Subject) -> str | None:
        """There has to be a DataLoader."""
        loader = loader_of(subject.training.batches)
        if loader is None:
            return "the batches come from no DataLoader"
        if self.needs_workers and not loader.num_workers:
            return "the DataLoader has no workers"
        return self.refuses_loader(loader, subject)

    def loader(self, subject: Subject) -> DataLoader[Any]:
        """The DataLoader that a workload which is not refused has."""
        loader = loader_of(subject.training.batches)
        assert loader is not None
        return loader

    @abc.abstractmethod
    def refuses_loader(self, loader: DataLoader[Any], subject: Subject) -> str | None:
        """Why the loader has no use for it."""

    @abc.abstractmethod
    def wanted(self, settings: LoaderSettings, parameters: Parameters) -> LoaderSettings:
        """The settings with it."""

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """Copy the loader with the setting; the user's own is left alone."""
        work = subject.training
        work.batches = over_loader(
            work.batches, lambda loader: with_settings(loader, self.wanted(settings_of(loader), parameters))
        )

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """The loader has it."""
        now = settings_of(self.loader(subject))
        return None if now == self.wanted(now, parameters) else f"the DataLoader runs with {now.label}"

    def lines(self, parameters: Parameters) -> list[str]:
        """The arguments."""
        blank = LoaderSettings(num_workers=1, prefetch_factor=2) if self.needs_workers else LoaderSettings()
        return [f"# DataLoader(..., {self.wanted(blank, parameters).keywords})"]


@lever
class NumWorkers(_LoaderSetting):
    """Load batches in worker processes."""

    name = "num_workers"
    title = "load batches in worker processes"
    why = (
        "The next batches are made while the step runs. Workers take cores from the step, and each batch goes through shared memory: "
        "what is cheap to make is made faster without. Random augmentation draws other numbers in workers, which the comparison refuses."
    )
    prior = 0.9

    def refuses_loader(self, loader: DataLoader[Any], subject: Subject) -> str | None:
        """Workers of an iterable dataset must not repeat each other, and there have to be cores."""
        if repeats_itself(loader):
            return REPEATED
        if self.choices(subject):
            return None
        return "there is no other number of workers for the cores of this machine"

    def choices(self, subject: Subject) -> list[Parameters]:
        """From the planner's numbers, those that leave a core to the step first."""
        loader = self.loader(subject)
        cores = int(read_cpu().usable_cpus)
        limits, before = Limits.found(None), settings_of(loader)
        space = Space(before, max(cores, 1), lambda settings: limits.refusal(settings, []))
        counts = [count for count in space.counts if count != before.num_workers]
        counts.sort(key=lambda count: abs(count - max(cores - 1, 1)))
        kept = [
            {"num": count, "persistent": True}
            for count in counts[:1]
            if count and not before.persistent_workers
        ]
        return [*({"num": count} for count in counts[:_AT_MOST]), *kept]

    def wanted(self, settings: LoaderSettings, parameters: Parameters) -> LoaderSettings:
        """So many workers; kept alive where that is chosen, since it draws another order from the second epoch on."""
        changed = settings.with_workers(parameters.get("num", 1))
        return replace(changed, persistent_workers=True) if parameters.get("persistent") else changed


@lever
class PrefetchFactor(_LoaderSetting):
    """Let workers make more batches ahead."""

    name = "prefetch_factor"
    title = "let workers make more batches ahead"
    why = (
        "A longer queue evens out batches that take longer than others; each batch in it takes shared memory."
    )
    needs_workers = True
    prior = 0.98

    def refuses_loader(self, loader: DataLoader[Any], subject: Subject) -> str | None:
        """It may be that long already."""
        if self.choices(subject):
            return None
        return f"the queue holds {loader.prefetch_factor} batches per worker already"

    def choices(self, subject: Subject) -> list[Parameters]:
        """Longer queues than it has."""
        now = self.loader(subject).prefetch_factor or 0
        return [{"num": num} for num in _DEEPER if num > now]

    def wanted(self, settings: LoaderSettings, parameters: Parameters) -> LoaderSettings:
        """So many per worker."""
        return replace(settings, prefetch_factor=parameters.get("num", _DEEPER[0]))


@lever
class PersistentWorkers(_LoaderSetting):
    """Keep workers alive from epoch to epoch."""

    name = "persistent_workers"
    title = "keep workers alive between epochs"
    why = (
        "Starting workers takes a tenth of a second to seconds at the head of each epoch; short epochs pay most. "
        "From the second epoch on the loader shuffles in another order, since workers that live on draw no new seed."
    )
    needs_workers = True
    prior = 0.95

    def refuses_loader(self, loader: DataLoader[Any], subject: Subject) -> str | None:
        """They may live on already."""
        return "the workers live on already" if loader.persistent_workers else None

    def wanted(self, settings: LoaderSettings, parameters: Parameters) -> LoaderSettings:
        """Kept."""
        return replace(settings, persistent_workers=True)


@lever
class PinMemory(_LoaderSetting):
    """Hand out batches in page-locked memory."""

    name = "pin_memory"
    title = "hand out batches in page-locked memory"
    why = "Copies to the GPU from page-locked memory are faster and need not be waited for; a thread of the loader locks them."
    prior = 0.95

    def refuses_loader(self, loader: DataLoader[Any], subject: Subject) -> str | None:
        """It is for copies to a GPU."""
        if subject.device.type != "cuda":
            return f"the work is on {subject.device.type}: nothing is copied to a GPU"
        return "the DataLoader pins its batches already" if loader.pin_memory else None

    def wanted(self, settings: LoaderSettings, parameters: Parameters) -> LoaderSettings:
        """Pinned."""
        return replace(settings, pin_memory=True)
