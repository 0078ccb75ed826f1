"""When a loader fails: what the user's dataset raised in a worker, or why workers cannot be started, in one line."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pickle import PicklingError

from pyrometer.errors import InputError, PyrometerError, UserProgramError
from pyrometer.workload.failure import described, first_line

_PLACE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_TORCH = ("torch/utils/data/", "torch\\utils\\data\\", "pyrometer/loading/")


class WorkersRefusedError(InputError):
    """Workers cannot be started with this dataset, collate function or start method."""


@contextlib.contextmanager
def loader_code(what: str) -> Iterator[None]:
    """Turn what a loader raises into a `UserProgramError` that names the user's error and line, also out of a worker.

    >>> with loader_code("the loader"):
    ...     raise KeyError("a.npy")
    Traceback (most recent call last):
    pyrometer.errors.UserProgramError: the loader raised KeyError: 'a.npy'
    """
    try:
        yield
    except (PyrometerError, StopIteration):
        raise
    except (Exception, SystemExit) as error:
        raise UserProgramError(f"{what} raised {in_worker(error) or described(error)}") from error


@contextlib.contextmanager
def starting_workers(method: str) -> Iterator[None]:
    """Tell a dataset that cannot be pickled from other failures.

    Raises:
        WorkersRefusedError: something that workers need cannot be pickled.
    """
    try:
        yield
    except (PicklingError, AttributeError, TypeError) as error:
        if "pickle" not in str(error).lower() and not isinstance(error, PicklingError):
            raise
        raise WorkersRefusedError(
            f"loader: its workers cannot be started by {method}, for which dataset, collate_fn and worker_init_fn are pickled "
            f"({first_line(error)}); define them at the top of a module, or pass multiprocessing_context='fork'"
        ) from error


def in_worker(error: BaseException) -> str | None:
    """What was raised in a worker, in one line; `None` when it was not raised in one.

    torch packs the worker's traceback into the text of an exception of the same class.
    """
    lines = str(error).splitlines()
    if not lines or not re.match(r"Caught \w+ in DataLoader worker", lines[0]):
        return None
    places = [match for match in map(_PLACE.search, lines) if match]
    own = [place for place in places if not any(part in place["file"] for part in _TORCH)]
    raised = next((line.strip() for line in reversed(lines) if line.strip() and not line.startswith(" ")), "")
    where = f"{own[-1]['file']}:{own[-1]['line']}, in a worker" if own else "in a worker"
    return f"{raised} ({where})"
