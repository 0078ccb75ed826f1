"""Runs under way are announced in the store, for `pyrometer ui` to show."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pyrometer.store.running import Announcement

_KEY = "pyrometer.announcement"
_LONGEST = 300


@contextlib.contextmanager
def announced(store_location: str | None, flags: Mapping[str, Any]) -> Iterator[None]:
    """Announce the verb that runs inside, until it ends in whatever way; not where nothing is stored.

    Args:
        store_location: folder of the store; `None` with `--no-store`.
        flags: of the verb, which name its target.
    """
    if store_location is None:
        yield
        return
    from pyrometer.store.place import local_folder
    from pyrometer.store.running import Announcement

    context = click.get_current_context()
    kind = str(context.info_name)
    with Announcement(local_folder(store_location), kind=kind, target=_target(flags) or kind) as announcement:
        context.meta[_KEY] = announcement
        announcement.tell(None, "starting")
        yield


def announcement() -> Announcement | None:
    """Where the verb under way tells how far it is; `None` where nobody would hear it."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(_KEY)


def _target(flags: Mapping[str, Any]) -> str:
    """As it will be stored."""
    from pyrometer.redaction import redacted_argv

    named = [flags["target"]] if flags.get("target") else []
    words = [*named, *flags.get("arguments", ()), *flags.get("inputs", ())]
    words = redacted_argv(words)
    word = words[0] if len(words) == 1 else shlex.join(words)
    versus = f" vs {flags['vs']}" if flags.get("vs") else ""
    return f"{word}{versus}"[:_LONGEST]
