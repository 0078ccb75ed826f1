"""Results of files that have not changed since, below `.pyrometer/lint-cache`."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

import pyrometer.rules
from pyrometer.files import replacing
from pyrometer.record import Record
from pyrometer.redaction import redacted
from pyrometer.rules.lint.result import FileResult
from pyrometer.rules.rule import Rule
from pyrometer.version import __version__

FOLDER = Path(".pyrometer", "lint-cache")


class Entry(Record, frozen=True, kw_only=True):
    """What is kept of one file."""

    key: str
    result: FileResult


class Cache(NamedTuple):
    """Where results are kept, and what they depend on beside the file: tool, interpreter, rules and settings."""

    folder: Path
    basis: str

    def get(self, shown: str, data: bytes, codes: Iterable[str]) -> FileResult | None:
        """The result that is kept for this very content, or None."""
        try:
            entry = msgspec.json.decode(self._place(shown).read_bytes(), type=Entry)
        except (OSError, msgspec.MsgspecError):
            return None
        return entry.result if entry.key == self._key(data, codes) else None

    def put(self, shown: str, data: bytes, codes: Iterable[str], result: FileResult) -> None:
        """Keep a result in place of an older one, unless it holds a secret; a folder that cannot be written costs time only."""
        if redacted(result) is not result:
            return
        entry = Entry(key=self._key(data, codes), result=result)
        with contextlib.suppress(OSError), replacing(self._place(shown)) as beside:
            beside.write_bytes(msgspec.json.encode(entry))

    def _place(self, shown: str) -> Path:
        return self.folder / f"{_digest(shown.encode())}.json"

    def _key(self, data: bytes, codes: Iterable[str]) -> str:
        return _digest("\n".join([self.basis, *codes]).encode(), data)


def open_cache(root: Path, rules: Iterable[Rule], limits: Mapping[str, float]) -> Cache:
    """The cache of a project, made if it is not there, and hidden from version control."""
    folder = root / FOLDER
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        ignored = folder / ".gitignore"
        if not ignored.exists():
            ignored.write_text("*\n", encoding="utf-8")
    return Cache(folder, _basis(rules, limits))


def _basis(rules: Iterable[Rule], limits: Mapping[str, float]) -> str:
    """What decides: limits that the user set, and the code: its files by time and size, which is enough for those who work on rules too."""
    own = Path(pyrometer.rules.__file__).parent.rglob("*.py")
    foreign = {
        sys.modules[check.__module__].__file__ or ""
        for rule in rules
        for check in rule.source_checks
        if not check.__module__.startswith("pyrometer.")
    }
    files = sorted({*map(str, own), *filter(None, foreign)})
    stamps = [f"{file}:{stat.st_mtime_ns}:{stat.st_size}" for file in files for stat in [os.stat(file)]]  # noqa: PTH116 - many
    thresholds = [f"{name}={value!r}" for name, value in sorted(limits.items())]
    return _digest("\n".join([__version__, sys.version, *thresholds, *stamps]).encode())


def _digest(*parts: bytes) -> str:
    whole = hashlib.blake2b(digest_size=16)
    for part in parts:
        whole.update(part)
    return whole.hexdigest()
