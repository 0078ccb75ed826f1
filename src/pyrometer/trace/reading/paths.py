"""Which files are meant: names, patterns and folders."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path

from pyrometer.errors import InputError

ENDINGS = (".json", ".json.gz", ".json.zst", ".json.zstd")


def find_files(paths: str | Path | Sequence[str | Path]) -> list[Path]:
    """The files of names, patterns (`rank*.json.gz`) and folders, each once, in order.

    Of a folder all traces are meant: the files whose name speaks of a trace or of a rank, or else all JSON; those of its
    sub-folders where it holds none itself.

    Raises:
        InputError: nothing is given, or a pattern or a folder leads to no file.
    """
    given = [paths] if isinstance(paths, (str, Path)) else list(paths)
    if not given:
        raise InputError("no trace files given; pass a file, a folder of them or a pattern")
    found: dict[str, Path] = {}
    for one in given:
        for path in _files(Path(one).expanduser()):
            found.setdefault(
                os.path.realpath(path), path
            )  # unlike `resolve`, takes a link that leads to itself
    for path in found.values():
        if path.is_fifo() or path.is_char_device():
            raise InputError(
                f"{path}: is a pipe or a terminal, and a trace is read more than once; write it to a file first"
            )
    return list(found.values())


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return _in_folder(path)
    if path.exists() or not glob.has_magic(str(path)):
        return [path]
    matches = sorted(Path(match) for match in glob.glob(str(path), recursive=True))  # noqa: PTH207  # absolute patterns
    files = [file for match in matches for file in (_in_folder(match) if match.is_dir() else [match])]
    if not files:
        raise InputError(f"{path}: no file matches this pattern; pass one that does")
    return files


def _in_folder(folder: Path) -> list[Path]:
    for pattern in ("*", "*/*"):
        every = [p for p in sorted(folder.glob(pattern)) if p.name.lower().endswith(ENDINGS) and p.is_file()]
        paths = [p for p in every if "trace" in p.name.lower() or "rank" in p.name.lower()]
        if every:
            return paths or every
    raise InputError(
        f"{folder}: no trace in this folder ({', '.join(ENDINGS)}); pass a file or another folder"
    )
