"""An alarm as people are told of it: what, how bad, since when, and on what evidence."""

from __future__ import annotations

import enum
import hashlib
from typing import Annotated

import msgspec

from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc


class Severity(enum.IntEnum):
    """How soon somebody has to look."""

    INFO = 0
    WARNING = 1
    CRITICAL = 2

    @property
    def word(self) -> str:
        """As labels have it."""
        return self.name.lower()


class Alert(Record, frozen=True, kw_only=True):
    """One problem; two alerts of the same name and labels are the same problem."""

    name: Annotated[str, doc("of the alarm, such as infer.latency/cusum")]
    severity: Severity = Severity.WARNING
    labels: Annotated[dict[str, str], doc("where: model, version, device, host")] = {}
    summary: str = ""
    evidence: Annotated[list[str], doc("what the detector saw, and which run was stored")] = []
    since_s: Annotated[Seconds, doc("Unix time of the first reading over the limit")] = 0.0
    ended_s: Annotated[Seconds | None, doc("Unix time; null while it lasts")] = None

    @property
    def fingerprint(self) -> str:
        """The same for the same problem, in every process."""
        identity = msgspec.json.encode([self.name, sorted(self.labels.items())])
        return hashlib.sha256(identity).hexdigest()[:16]


class Notice(Record, frozen=True, kw_only=True):
    """One message: the alerts of one group that changed, or that still last."""

    group: str
    severity: Severity
    firing: list[Alert] = []
    resolved: list[Alert] = []
    escalated: Annotated[bool, doc("nobody ended it in the time that was set")] = False
    num_held_back: Annotated[int, doc("notices of this group that cool-down kept back since the last")] = 0

    @property
    def title(self) -> str:
        """One line for a subject.

        >>> Notice(group="perception", severity=Severity.WARNING, firing=[Alert(name="a"), Alert(name="b")]).title
        'WARNING perception: a, b'
        """
        state = "RESOLVED" if not self.firing else ("ESCALATED " * self.escalated) + self.severity.name
        names = [alert.name for alert in (self.firing or self.resolved)]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        return f"{state} {self.group}: {', '.join(names[:3])}{more}"

    @property
    def body(self) -> str:
        """A paragraph per alert, the evidence below."""
        lines = []
        for state, alerts in (("firing", self.firing), ("resolved", self.resolved)):
            for alert in alerts:
                lines.append(f"{state}: {alert.name}: {alert.summary}".rstrip(": "))
                lines += [f"  {said}" for said in alert.evidence]
        if self.num_held_back:
            lines.append(f"{self.num_held_back} earlier notices of this group were held back")
        return "\n".join(lines)
