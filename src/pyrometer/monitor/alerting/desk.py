"""Which changes of alarms become notices, and when: a pure state machine on given times.

* The same problem is told once, however often its alarm fires; what ends and begins again within the cool-down is one problem.
* Alerts of one group (by default of one model) that change within `wait_s` share a notice.
* A group is told at most once per `cool_down_s`; what came meanwhile comes with the next notice, unless it is more severe.
* What lasts is told again after `repeat_s`, and with more severity after `escalate_s`.
* The end of a problem that was told is always told, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from pyrometer.errors import InputError
from pyrometer.monitor.alerting.alert import Alert, Notice, Severity
from pyrometer.quantity import Seconds
from pyrometer.record import Record


class DeskSettings(Record, frozen=True, kw_only=True):
    """When something is told."""

    group_by: tuple[str, ...] = ("model",)
    wait_s: Seconds = 5.0
    cool_down_s: Seconds = 300.0
    repeat_s: Seconds = 14_400.0
    escalate_s: Seconds = 3600.0
    most_alerts: int = 500

    def __post_init__(self) -> None:
        """Refuse times that no desk could keep."""
        for name in ("wait_s", "cool_down_s", "repeat_s", "escalate_s"):
            if getattr(self, name) < 0:
                raise InputError(f"alerts: {name}: got {getattr(self, name):g}; legal is 0 or more seconds")


@dataclass
class _Problem:
    alert: Alert
    is_told: bool = False
    is_escalated: bool = False


@dataclass
class _Group:
    problems: dict[str, _Problem] = field(default_factory=dict)
    changed_s: Seconds | None = None
    told_s: Seconds | None = None
    told_severity: Severity = Severity.INFO
    held_back: int = 0


class AlertDesk:
    """Takes alerts in, and gives notices out."""

    def __init__(self, settings: DeskSettings | None = None) -> None:
        self.settings = settings or DeskSettings()
        self._groups: dict[str, _Group] = {}
        self.num_left_out = 0

    def fire(self, alert: Alert, now_s: Seconds) -> None:
        """A problem began, or still lasts; the higher severity counts."""
        group = self._groups.setdefault(self._key(alert), _Group())
        known = group.problems.get(alert.fingerprint)
        if known is None:
            if sum(len(one.problems) for one in self._groups.values()) >= self.settings.most_alerts:
                self.num_left_out += 1
                return
            group.problems[alert.fingerprint] = _Problem(alert)
            group.changed_s = now_s if group.changed_s is None else group.changed_s
            return
        began_anew = known.alert.ended_s is not None
        worse = alert.severity > known.alert.severity
        severity = max(alert.severity, known.alert.severity)
        since_s = known.alert.since_s or alert.since_s
        known.alert = msgspec.structs.replace(alert, severity=severity, since_s=since_s, ended_s=None)
        if worse or (began_anew and not known.is_told):
            known.is_told = False
            group.changed_s = now_s if group.changed_s is None else group.changed_s

    def end(self, alert: Alert, now_s: Seconds) -> None:
        """A problem ended; one that was never told is forgotten."""
        group = self._groups.get(self._key(alert))
        known = group.problems.get(alert.fingerprint) if group else None
        if group is None or known is None or known.alert.ended_s is not None:
            return
        known.alert = msgspec.structs.replace(known.alert, ended_s=now_s)
        group.changed_s = now_s if group.changed_s is None else group.changed_s

    def notices(self, now_s: Seconds) -> list[Notice]:
        """What is to be told now."""
        found = [self._notice(key, group, now_s) for key, group in self._groups.items()]
        for key in [key for key, group in self._groups.items() if not group.problems]:
            if now_s - (self._groups[key].told_s or 0.0) > self.settings.cool_down_s:
                del self._groups[key]
        return [notice for notice in found if notice is not None]

    def _notice(self, key: str, group: _Group, now_s: Seconds) -> Notice | None:
        escalated = self._escalate(group, now_s)
        lasting = [problem for problem in group.problems.values() if problem.alert.ended_s is None]
        repeat = lasting and group.told_s is not None and now_s - group.told_s >= self.settings.repeat_s
        is_due = group.changed_s is not None and now_s - group.changed_s >= self.settings.wait_s
        if not (is_due or escalated or repeat):
            return None
        severity = max((problem.alert.severity for problem in lasting), default=Severity.INFO)
        cooling = group.told_s is not None and now_s - group.told_s < self.settings.cool_down_s
        if cooling and not escalated and severity <= group.told_severity:
            group.held_back += is_due
            group.changed_s = now_s if is_due else group.changed_s  # counted once per wait
            return None
        return self._told(key, group, now_s, severity=severity, escalated=escalated)

    def _told(self, key: str, group: _Group, now_s: Seconds, *, severity: Severity, escalated: bool) -> Notice | None:  # fmt: skip
        firing = [problem.alert for problem in group.problems.values() if problem.alert.ended_s is None]
        ended = {name: one for name, one in group.problems.items() if one.alert.ended_s is not None}
        resolved = [problem.alert for problem in ended.values() if problem.is_told]
        for name in ended:
            del group.problems[name]
        for problem in group.problems.values():
            problem.is_told = True
        group.changed_s = None
        if not firing and not resolved:
            return None  # it began and ended before anyone was told
        notice = Notice(
            group=key,
            severity=severity,
            firing=firing,
            resolved=resolved,
            escalated=escalated,
            num_held_back=group.held_back,
        )
        group.told_s, group.told_severity, group.held_back = now_s, severity, 0
        return notice

    def _escalate(self, group: _Group, now_s: Seconds) -> bool:
        escalated = False
        for problem in group.problems.values():
            lasting = problem.alert.ended_s is None and problem.is_told and not problem.is_escalated
            if lasting and now_s - problem.alert.since_s >= self.settings.escalate_s:
                problem.is_escalated = escalated = True
                worse = Severity(min(problem.alert.severity + 1, Severity.CRITICAL))
                problem.alert = msgspec.structs.replace(problem.alert, severity=worse)
        return escalated

    def _key(self, alert: Alert) -> str:
        return "/".join(alert.labels.get(label, "") for label in self.settings.group_by) or alert.name
