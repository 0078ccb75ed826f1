"""What a listing says of a stored run."""

from __future__ import annotations

from pyrometer.store.commit import short_commit
from pyrometer.store.run import RunSummary, created_at


def taken(run: RunSummary) -> str:
    """When a run was made, in the reader's time zone."""
    return f"{created_at(run).astimezone():%Y-%m-%d %H:%M}"


def commit(run: RunSummary) -> str:
    """The commit of a run as people abbreviate it; `+` stands for changes on top of it."""
    return short_commit(run.commit_sha, run.dirty)
