"""Sending a workload from memory to another process: by cloudpickle, which takes along classes of a script or a notebook."""

from __future__ import annotations

import pickle
from pathlib import Path

import cloudpickle

from pyrometer.errors import InputError
from pyrometer.tuning.trials.protocol import Source
from pyrometer.workload.failure import first_line
from pyrometer.workload.loading import load_workload
from pyrometer.workload.state import preserved_rng
from pyrometer.workload.workload import Workload, require_workload


def send(work: Workload, place: Path) -> None:
    """Write a workload to a file that only this user may read, for a process that is ours.

    Raises:
        InputError: it holds something that cannot be sent.
    """
    require_workload(work)
    place.touch(mode=0o600)
    try:
        with preserved_rng():
            place.write_bytes(cloudpickle.dumps(work))
    except Exception as error:
        raise InputError(
            f"work: cannot be sent to a fresh process ({type(error).__name__}: {first_line(error)}); "
            "name a target instead, as in pm.tune('model.py:workload')"
        ) from error


def workload_from(source: Source) -> Workload:
    """Load a target, or read what `send` wrote.

    Raises:
        InputError: it cannot be made again here.
    """
    if source.spec is not None:
        return load_workload(source.spec.target())
    if source.pickled is None:
        raise InputError("work: neither a target nor a workload was sent")
    try:
        # Written by the process that started this one, a moment ago.
        work = pickle.loads(Path(source.pickled).read_bytes())  # noqa: S301
    except Exception as error:
        raise InputError(
            f"work: cannot be made again in a fresh process ({type(error).__name__}: {first_line(error)}); "
            "name a target instead, as in pm.tune('model.py:workload')"
        ) from error
    require_workload(work)
    result: Workload = work
    return result
