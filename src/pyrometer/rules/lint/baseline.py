"""A baseline: the findings that a project lives with for now, so that only new ones are told.

The file names each by rule, file and fingerprint; lines may move without a change. It is meant to be committed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec

from pyrometer.errors import InputError
from pyrometer.files import replacing
from pyrometer.place import Place
from pyrometer.record import Record, doc, from_json, to_json
from pyrometer.rules.finding import Suppressed
from pyrometer.rules.lint.files import shown
from pyrometer.rules.lint.result import LintFinding, LintResult
from pyrometer.rules.measuring.unreadable_file import RULE as UNREADABLE

DEFAULT_NAME = ".pyrometer-baseline.json"
VERSION = 1


class Known(Record, frozen=True, kw_only=True, order=True):
    """One finding that is lived with."""

    file: Annotated[str, doc("from the folder of the baseline")]
    code: str
    fingerprint: str


class Baseline(Record, frozen=True, kw_only=True):
    """The content of a baseline file."""

    version: int = VERSION
    findings: list[Known] = []


def read_baseline(path: Path) -> Baseline:
    """Read a baseline.

    Raises:
        InputError: there is none, or it is not one of this version.
    """
    try:
        baseline = from_json(Baseline, path.read_bytes())
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read: {error.strerror}; `pyrometer lint --update-baseline` writes one"
        ) from error
    except InputError as error:
        raise InputError(f"{path}: {error}; restore it, or write another with --update-baseline") from error
    if baseline.version != VERSION:
        raise InputError(f"{path}: a baseline of version {baseline.version}; legal is {VERSION}")
    return baseline


def write_baseline(path: Path, result: LintResult, linted: Iterable[str], before: Baseline) -> int:
    """Write the findings of now; those of files that were not linted, and still exist, stay.

    Returns:
        Number of findings in it.

    Raises:
        InputError: it cannot be written.
    """
    folder = path.absolute().parent
    now = {_known(finding, folder) for finding in result.findings if finding.code != UNREADABLE.code}
    done = {_from(folder, file) for file in linted}
    rest = {
        finding
        for finding in before.findings
        if finding.file not in done and (folder / finding.file).exists()
    }
    findings = sorted(now | rest)
    try:
        with replacing(path) as beside:
            beside.write_bytes(to_json(Baseline(findings=findings), indent=1) + b"\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error
    return len(findings)


def without_known(result: LintResult, baseline: Baseline, path: Path) -> LintResult:
    """The result less what the baseline knows; that is told among what is suppressed."""
    folder = path.absolute().parent
    known = set(baseline.findings)
    new = [finding for finding in result.findings if _known(finding, folder) not in known]
    old = [finding for finding in result.findings if _known(finding, folder) in known]
    suppressed = [
        Suppressed(
            code=finding.code,
            name=finding.name,
            where=Place(file=finding.file, line=finding.line),
            reason=f"in {shown(path)}",
            by="baseline",
        )
        for finding in old
    ]
    return msgspec.structs.replace(result, findings=new, suppressed=[*result.suppressed, *suppressed])


def num_gone(result: LintResult, baseline: Baseline, path: Path, linted: Iterable[str]) -> int:
    """How many findings of the baseline are gone from the files that were linted."""
    folder = path.absolute().parent
    now = {_known(finding, folder) for finding in result.findings}
    done = {_from(folder, file) for file in linted}
    return sum(finding.file in done and finding not in now for finding in baseline.findings)


def _known(finding: LintFinding, folder: Path) -> Known:
    return Known(file=_from(folder, finding.file), code=finding.code, fingerprint=finding.fingerprint)


def _from(folder: Path, file: str) -> str:
    return Path(os.path.relpath(file, folder)).as_posix()
