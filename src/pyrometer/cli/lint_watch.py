"""`pyrometer lint --watch`: again whenever a file changes, appears or goes."""

from __future__ import annotations

import time
from typing import TypeAlias

import click

from pyrometer.cli.lint_flags import LintFlags
from pyrometer.cli.lint_run import lint_named
from pyrometer.errors import PyrometerError

_PAUSE_S = 0.3  # shorter than it takes to look from the editor to the terminal
_SHARE = 0.05  # of the time that looking for changes may take, in a project of whatever size

_Stamps: TypeAlias = "dict[str, tuple[int, int]]"


def watch(asked: LintFlags) -> int:
    """Lint now, and again after each change, until interrupted.

    Files and settings are looked for anew each time; what is wrong with either is told, and the watch goes on.
    """
    while True:
        before = _stamps(asked)
        click.clear()
        try:
            lint_named(asked)
        except PyrometerError as error:
            click.echo(f"error: {error}", err=True)
        if not asked.quiet:
            click.echo("watching for changes; Ctrl-C ends it", err=True)
        if asked.fixes:
            before = _stamps(asked)  # our own changes call for no other look
        _wait_for_change(asked, before)


def _wait_for_change(asked: LintFlags, before: _Stamps) -> None:
    """Polling needs no library, and sees changes on network drives and in containers too."""
    pause_s = _PAUSE_S
    while True:
        time.sleep(pause_s)
        start = time.perf_counter()
        if _stamps(asked) != before:
            return
        pause_s = max(_PAUSE_S, (time.perf_counter() - start) / _SHARE)


def _stamps(asked: LintFlags) -> _Stamps:
    """Time of the last change, and size, of each file that would be linted; empty while one of the paths is missing."""
    from pyrometer.rules.lint.files import files_of

    stamps = {}
    try:
        files = files_of(asked.paths, asked.settings())
    except PyrometerError:
        return {}  # the look that follows says why
    for file in files:
        try:
            stat = file.path.stat()
        except OSError:
            continue  # gone between the two looks
        stamps[file.shown] = (stat.st_mtime_ns, stat.st_size)
    return stamps
