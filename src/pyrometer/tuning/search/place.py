"""Where a search takes place: the laboratory, and the folder for what is decided and written."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyrometer.errors import InputError
from pyrometer.tuning.ranks.forks import Forks
from pyrometer.tuning.ranks.laboratory import laboratory_for
from pyrometer.tuning.search.settings import TuneSettings
from pyrometer.tuning.trials import protocol
from pyrometer.tuning.trials.gate import Limits
from pyrometer.tuning.trials.laboratory import Laboratory
from pyrometer.tuning.trials.sending import send
from pyrometer.workload.loading import load_workload
from pyrometer.workload.target import Target, parse_target
from pyrometer.workload.workload import Workload


@dataclass
class SearchPlace:
    """Where a search takes place."""

    target: str
    laboratory: Laboratory
    folder: Path
    path: Path | None
    cwd: Path


@contextlib.contextmanager
def open_place(
    work: Workload | str | Target, settings: TuneSettings, path: Path | None, num_ranks: int | None
) -> Iterator[SearchPlace]:
    """A folder for the search: beside the recipe, where it can be resumed; else a temporary one."""
    with contextlib.ExitStack() as stack:
        if path is None:
            temporary = tempfile.TemporaryDirectory(prefix="pyrometer-tune-", ignore_cleanup_errors=True)
            folder = Path(stack.enter_context(temporary))
        else:
            folder = path.with_suffix(".tune")
            _made(folder)
        if isinstance(work, str):
            work = parse_target(work)
        limits = Limits(tolerance=settings.tolerance, metric_drop=settings.metric_drop)
        if num_ranks is not None:
            if not isinstance(work, Target):
                raise InputError(
                    "nproc: got a workload, of one process; name the script that torchrun would start"
                )
            forks = stack.enter_context(contextlib.closing(Forks(num_ranks)))
            ranks = laboratory_for(work, forks, folder, limits)
            yield SearchPlace(work.text, ranks, folder, path, Path(work.spec.cwd))
            return
        if isinstance(work, Target):
            source, name, cwd = protocol.Source(spec=work.spec), work.text, Path(work.spec.cwd)
            if work.kind == "script":
                load_workload(work)  # says that a script has no factory, and which there are
        else:
            pickled = folder / "workload.pickle"
            send(work, pickled)
            stack.callback(pickled.unlink, missing_ok=True)
            source, name, cwd = protocol.Source(pickled=str(pickled)), work.name, Path.cwd()
        laboratory = Laboratory(source, folder, limits, metric=settings.metric, cwd=str(cwd))
        yield SearchPlace(name, laboratory, folder, path, cwd)


def _made(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be made: {error.strerror}; name another place for the recipe with --recipe"
        ) from error
