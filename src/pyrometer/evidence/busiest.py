"""The one line that is said to keep the host busiest."""

from __future__ import annotations

from pyrometer.host.profile import HostProfile
from pyrometer.trace.reporting.verdict import Busiest


def busiest_line(host: HostProfile | None) -> Busiest | None:
    """Of the lines that were sampled, that with most time of its own; None where none was."""
    if host is None or not host.lines:
        return None
    first = host.lines[0]
    return Busiest(first.where, host.share(first.own_s))
