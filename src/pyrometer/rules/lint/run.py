"""Lint many files, several at a time, in one order."""

from __future__ import annotations

import gc
import multiprocessing
import re
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import NamedTuple

from pyrometer.errors import InputError, UsageError
from pyrometer.rules.lint.cache import Cache, open_cache
from pyrometer.rules.lint.check import check_text
from pyrometer.rules.lint.document import Document, read_document
from pyrometer.rules.lint.files import SourceFile, files_of
from pyrometer.rules.lint.presenting import present
from pyrometer.rules.lint.result import FileResult, LintFinding, LintResult, combine
from pyrometer.rules.measuring.unreadable_file import RULE as UNREADABLE
from pyrometer.rules.rule import Rule
from pyrometer.rules.settings import RuleSettings
from pyrometer.source.knowledge import TORCH_PACKAGES
from pyrometer.source.module import DEFAULTS

_WORTH_PARSING = re.compile(rf"\b(?:pyrometer\s*:|(?:{'|'.join(TORCH_PACKAGES)})\b)".encode())
_CHUNK = 8  # files that a process takes at a time: few enough to share the work evenly
_FEW = 24  # for so few files, starting processes takes longer than it saves


def lint_paths(
    paths: Iterable[str | Path], settings: RuleSettings, jobs: int = 1, *, cache: bool = False
) -> LintResult:
    """Find what the chosen rules say about files, folders and patterns.

    Files that import nothing which works with tensors are passed over. The order of findings does not depend on `jobs`.

    Args:
        paths: files, folders, patterns such as `src/**/*.py`.
        settings: which rules run where.
        jobs: processes. Where a process cannot be forked safely, new ones are started, which import the main module
            again: a script that passes more than 1 needs its `if __name__ == "__main__":`.
        cache: keep results below `.pyrometer/lint-cache` in the root of the settings, and use those kept.

    Raises:
        InputError: a path that does not exist.
        UsageError: a selector that names no rule, or fewer than one job.
    """
    files = files_of(map(str, paths), settings)
    return lint_files(files, settings, jobs, cache=cache)


def lint_files(
    files: Sequence[SourceFile], settings: RuleSettings, jobs: int = 1, *, cache: bool = False
) -> LintResult:
    """`lint_paths` for files that were found already."""
    if jobs < 1:
        raise UsageError(f"jobs: got {jobs}; legal is 1 or more processes")
    rules = settings.chosen()
    kept = open_cache(Path(settings.root), rules, settings.limits) if cache and files else None
    work = Work(settings, tuple(rule.code for rule in rules), kept)
    if jobs == 1 or len(files) < _FEW:
        return combine([lint_file(file, work, rules) for file in files])
    return combine(_in_processes(files, work, min(jobs, 1 + len(files) // _CHUNK)))


class Work(NamedTuple):
    """What a process has to know; rules themselves do not travel, their codes do."""

    settings: RuleSettings
    codes: tuple[str, ...]
    cache: Cache | None


def lint_file(file: SourceFile, work: Work, rules: Sequence[Rule]) -> FileResult:
    """What the rules say about one file; one that cannot be read is a finding too."""
    here = rules_for(file, work.settings, rules)
    try:
        data = file.path.read_bytes()
    except OSError as error:
        return unreadable(file.shown, f"cannot be opened: {error.strerror or error}", here)
    if not is_worth_parsing(data):
        return FileResult(file=file.shown, looked_at=False)
    codes = [rule.code for rule in here]
    known = work.cache.get(file.shown, data, codes) if work.cache is not None else None
    if known is not None:
        return known
    result = lint_bytes(file.shown, data, here, work.settings.limits)
    if work.cache is not None and not result.failures:
        work.cache.put(file.shown, data, codes, result)
    return result


def lint_bytes(
    shown: str, data: bytes, rules: Sequence[Rule], limits: Mapping[str, float] = DEFAULTS
) -> FileResult:
    """What rules say about the content of a file."""
    try:
        document = read_document(shown, data)
    except InputError as error:
        return unreadable(shown, str(error), rules)
    return lint_document(shown, document, rules, limits)


def lint_document(
    shown: str, document: Document, rules: Sequence[Rule], limits: Mapping[str, float] = DEFAULTS
) -> FileResult:
    """What rules say about a file that has been read."""
    try:
        checked = check_text(shown, document.text, rules, limits)
        result = present(shown, document, checked)
    except InputError as error:
        return unreadable(shown, str(error), rules)
    checked.module.let_go()
    return result


def rules_for(file: SourceFile, settings: RuleSettings, rules: Sequence[Rule]) -> Sequence[Rule]:
    """The rules that are not ignored in this file."""
    if not settings.per_file_ignores:
        return rules
    ignored = settings.ignored_in(file.path)
    return [rule for rule in rules if rule.code not in ignored]


def is_worth_parsing(data: bytes) -> bool:
    """Whether a file names a package that works with tensors, or speaks to us."""
    return _WORTH_PARSING.search(data) is not None


def unreadable(shown: str, message: str, rules: Sequence[Rule]) -> FileResult:
    """The result of a file that no rule could look at."""
    if UNREADABLE not in rules:
        return FileResult(file=shown, looked_at=False)
    place = re.match(r":(\d+): ", message.removeprefix(shown))
    text = message.removeprefix(shown).removeprefix(place[0] if place else "")
    line = int(place[1]) if place else 1
    finding = LintFinding(
        code=UNREADABLE.code,
        name=UNREADABLE.name,
        severity=UNREADABLE.severity,
        file=shown,
        line=line,
        column=1,
        end_line=line,
        end_column=1,
        message=text,
        advice="Mend the file, or name it under exclude.",
        fingerprint=f"{UNREADABLE.code}:0",
    )
    return FileResult(file=shown, findings=[finding], looked_at=False)


def _in_processes(files: Sequence[SourceFile], work: Work, jobs: int) -> list[FileResult]:
    chunks = [files[at : at + _CHUNK] for at in range(0, len(files), _CHUNK)]
    with ProcessPoolExecutor(jobs, mp_context=_context(), initializer=_begin) as pool:
        futures = [pool.submit(_lint_chunk, work, chunk) for chunk in chunks]
    return [
        file_result
        for chunk, future in zip(chunks, futures, strict=True)
        for file_result in _gathered(chunk, future, work)
    ]


def _begin() -> None:
    """Syntax trees are many small objects: looking for garbage among them while they grow takes a fifth of the time."""
    gc.freeze()
    gc.disable()


def _lint_chunk(work: Work, files: Sequence[SourceFile]) -> list[FileResult]:
    rules = work.settings.chosen()
    results = [lint_file(file, work, rules) for file in files]
    gc.collect()
    return results


def _gathered(chunk: Sequence[SourceFile], future: Future[list[FileResult]], work: Work) -> list[FileResult]:
    """The results of a chunk; once a process has died all others are stopped, so that it may be any chunk's fault."""
    try:
        return future.result()
    except BrokenProcessPool:
        return _in_own_process(chunk, work)


def _in_own_process(files: Sequence[SourceFile], work: Work) -> list[FileResult]:
    """Lint files by themselves; where they kill their process too, one by one, to find the one that does."""
    with ProcessPoolExecutor(1, mp_context=_context(), initializer=_begin) as pool:
        try:
            return pool.submit(_lint_chunk, work, files).result()
        except BrokenProcessPool:
            pass
    if len(files) > 1:
        return [file_result for file in files for file_result in _in_own_process([file], work)]
    name = files[0].shown
    text = f"{name}: the process that linted it died, perhaps for want of memory; exclude it or report it"
    return [FileResult(file=name, failures=[text], looked_at=False)]


def _context() -> BaseContext:
    """Fork where that is safe, since a new interpreter would import all rules again."""
    can_fork = sys.platform == "linux" and threading.active_count() == 1 and "torch" not in sys.modules
    return multiprocessing.get_context("fork" if can_fork else "spawn")
