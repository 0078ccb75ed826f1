"""Several files at once, each in a process of its own, because decoding holds the GIL.

A worker is a fresh interpreter that runs `serve`: unlike a spawned `multiprocessing` worker it never imports the user's main
module, so a script without a `__main__` guard is not run again. It takes pairs of paths on its standard input, a
trace to read and an entry to write, and answers each with a line. Whatever a worker cannot do is done here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO

import msgspec

from pyrometer.errors import InputError
from pyrometer.trace.reading.entry import BrokenEntryError, read_entry, write_entry
from pyrometer.trace.reading.load import Loaded, load

WORTH_BYTES = 1 << 25
"""Text that makes starting processes worthwhile, which takes a few tenths of a second."""

PACKED_RATIO = 15  # of gzipped traces; 12 to 19 in practice
WORKER_BYTES = 300 << 20  # interpreter, libraries and a chunk
COLUMNS_SHARE = 0.8  # of the text, while tables are put in order
MEMORY_SHARE = 0.5  # of what is free


class _Task(msgspec.Struct):
    path: str
    out: str


class _Answer(msgspec.Struct):
    refused: str | None = None


def load_all(paths: Sequence[Path], *, workers: int | None = None) -> list[Loaded]:
    """Read files, at the same time where that pays.

    Args:
        paths: the files.
        workers: processes; by default as many as processors and free memory allow.

    Raises:
        InputError: a file cannot be read, or is not a trace; of several, the first.
    """
    count = _num_workers(paths) if workers is None else min(workers, len(paths))
    if count < 2 or not sys.executable:
        return [load(path) for path in paths]
    with tempfile.TemporaryDirectory(prefix="pyrometer-") as folder:
        outs = [Path(folder) / str(i) for i in range(len(paths))]
        queue: SimpleQueue[int] = SimpleQueue()
        for i in sorted(range(len(paths)), key=lambda i: -_raw_bytes(paths[i])):
            queue.put(i)
        refused: dict[int, str] = {}
        with ThreadPoolExecutor(count, thread_name_prefix="pyrometer-read") as pool:
            for _ in range(count):
                pool.submit(_drive, queue, paths, outs, refused)
        if refused:
            raise InputError(refused[min(refused)])
        return [_fetch(path, out) for path, out in zip(paths, outs, strict=True)]


def _fetch(path: Path, out: Path) -> Loaded:
    try:
        return read_entry(out)
    except (OSError, BrokenEntryError):  # the worker failed, or could not be started
        return load(path)
    finally:
        out.unlink(missing_ok=True)


def _drive(
    queue: SimpleQueue[int], paths: Sequence[Path], outs: Sequence[Path], refused: dict[int, str]
) -> None:
    """Give one worker task after task."""
    with _worker() as (to_worker, from_worker):
        while True:
            try:
                i = queue.get_nowait()
            except Empty:
                return
            to_worker.write(msgspec.json.encode(_Task(str(paths[i].absolute()), str(outs[i]))) + b"\n")
            to_worker.flush()
            line = from_worker.readline()
            if not line:
                return  # it died; the file is read by whoever asked
            answer = msgspec.json.decode(line, type=_Answer)
            if answer.refused is not None:
                refused[i] = answer.refused


@contextmanager
def _worker() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    home = str(Path(__file__).parents[3])  # so that the worker finds the same pyrometer
    code = f"import sys; sys.path.insert(0, {home!r}); from {__name__} import serve; serve()"
    process = subprocess.Popen(  # noqa: S603  # our own interpreter and our own text
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdin, process.stdout
    except BrokenPipeError:
        pass  # it died; see above
    finally:
        process.stdout.close()
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.wait()


def serve() -> None:
    """Be a worker, until the standard input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints does not disturb the answers
    for line in sys.stdin.buffer:
        task = msgspec.json.decode(line, type=_Task)
        answer = _Answer()
        try:
            write_entry(load(Path(task.path)), Path(task.out))
        except InputError as error:
            answer = _Answer(str(error))
        answers.write(msgspec.json.encode(answer) + b"\n")
        answers.flush()


def _num_workers(paths: Sequence[Path]) -> int:
    sizes = [_raw_bytes(path) for path in paths]
    if len(paths) < 2 or sum(sizes) < WORTH_BYTES:
        return 1
    import psutil  # one file is read without

    each = WORKER_BYTES + COLUMNS_SHARE * max(sizes)
    affordable = int(psutil.virtual_memory().available * MEMORY_SHARE / each)
    return max(1, min(len(paths), _num_processors(), affordable))


def _num_processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _raw_bytes(path: Path) -> int:
    """Size of the text, roughly and without opening the file."""
    try:
        size = path.stat().st_size
    except OSError:
        return 0  # told when it is read
    return size * PACKED_RATIO if path.suffix in {".gz", ".zst", ".zstd"} else size
