"""Ways to tell: Alertmanager's API, a webhook, and whatever Apprise knows (mail, Slack, PagerDuty, …)."""

from __future__ import annotations

import contextlib
import json
import urllib.error
import urllib.request
import warnings
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from pyrometer.errors import InputError, PyrometerError
from pyrometer.monitor.alerting.alert import Alert, Notice, Severity
from pyrometer.quantity import Seconds
from pyrometer.record import to_dict
from pyrometer.redaction import redacted

TIMEOUT_S = 10.0
"""Alertmanager takes an alert for ended when it hears nothing of it for this long."""


class NotDeliveredError(PyrometerError):
    """A notice did not arrive; `retry_after_s` is when its receiver wants to be asked again."""

    def __init__(self, said: str, retry_after_s: Seconds | None = None, *, is_final: bool = False) -> None:
        super().__init__(said)
        self.retry_after_s = retry_after_s
        self.is_final = is_final  # the receiver will never take it


class Route(Protocol):
    """One way to tell."""

    name: str
    least: Severity

    def send(self, notice: Notice, /) -> None:
        """Deliver a notice.

        Raises:
            NotDeliveredError: it did not arrive.
        """


class Webhook:
    """POSTs a notice as JSON.

    Args:
        url: where to.
        headers: such as one that authorises.
        least: notices below this severity are not sent, but for the end of what was.
    """

    def __init__(self, url: str, headers: Mapping[str, str] | None = None, least: Severity = Severity.INFO) -> None:  # fmt: skip
        self.name, self.least = f"webhook {redacted(checked(url))}", least
        self._url, self._headers = url, dict(headers or {})

    def send(self, notice: Notice, /) -> None:
        """Deliver a notice."""
        post(self._url, {"title": notice.title, "body": notice.body, **to_dict(notice)}, self._headers)


class Alertmanager:
    """Prometheus' Alertmanager, by version 2 of its API: it groups, silences and routes by itself.

    Args:
        url: of the server, such as http://localhost:9093.
        labels: of every alert.
        least: notices below this severity are not sent.
    """

    def __init__(self, url: str, labels: Mapping[str, str] | None = None, least: Severity = Severity.INFO) -> None:  # fmt: skip
        self.name, self.least = f"alertmanager {redacted(checked(url))}", least
        self._url = f"{url.rstrip('/')}/api/v2/alerts"
        self._labels = dict(labels or {})

    def send(self, notice: Notice, /) -> None:
        """Deliver a notice."""
        post(self._url, [self._plain(alert) for alert in (*notice.firing, *notice.resolved)])

    def _plain(self, alert: Alert) -> dict[str, Any]:
        labels = {"alertname": alert.name, "severity": alert.severity.word, **self._labels, **alert.labels}
        if alert.ended_s is not None:
            labels["severity"] = alert.severity.word
        plain: dict[str, Any] = {
            "labels": {key: value for key, value in labels.items() if value},
            "annotations": {"summary": alert.summary, "evidence": "\n".join(alert.evidence)},
            "startsAt": _rfc3339(alert.since_s),
        }
        if alert.ended_s is not None:
            plain["endsAt"] = _rfc3339(alert.ended_s)
        return plain


class AppriseRoute:
    """More than a hundred services, by Apprise.

    Args:
        urls: of Apprise, such as mailto://… or slack://….
        least: notices below this severity are not sent.

    Raises:
        InputError: Apprise is not installed, or does not know an address.
    """

    def __init__(self, urls: Sequence[str], least: Severity = Severity.WARNING) -> None:
        try:
            with _without_warnings():
                import apprise
        except ImportError as error:
            raise InputError(
                "alerts: Apprise is not installed; pip install 'pyrometer[alerts]', or use a webhook"
            ) from error
        self._apprise = apprise.Apprise()
        for url in urls:
            with _without_warnings():  # it imports its services with the first address
                is_known = self._apprise.add(url)
            if not is_known:
                kind = url.partition(":")[0]
                raise InputError(
                    f"alerts: Apprise does not know the address {kind}://…; see its list of services"
                )
        self.name, self.least = f"apprise ({len(urls)} addresses)", least

    def send(self, notice: Notice, /) -> None:
        """Deliver a notice."""
        kinds = {Severity.INFO: "info", Severity.WARNING: "warning", Severity.CRITICAL: "failure"}
        kind = kinds[notice.severity] if notice.firing else "success"
        if not self._apprise.notify(title=notice.title, body=notice.body, notify_type=kind):
            raise NotDeliveredError(f"{self.name}: a service did not take the notice")


@contextlib.contextmanager
def _without_warnings() -> Iterator[None]:
    """Apprise imports what Python has deprecated, which is not the user's to mend."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def checked(url: str) -> str:
    """An address that can be posted to.

    Raises:
        InputError: another scheme than http or https.
    """
    if not url.startswith(("http://", "https://")):
        raise InputError(f"alerts: got the address {redacted(url)!r}; legal is one with http:// or https://")
    return url


def post(url: str, content: Any, headers: Mapping[str, str] | None = None) -> None:
    """POST JSON.

    Raises:
        NotDeliveredError: the server cannot be reached, or answers with an error; for good where that is the request's fault.
    """
    said = {"Content-Type": "application/json", "User-Agent": "pyrometer", **(headers or {})}
    request = urllib.request.Request(url, json.dumps(content).encode(), said)  # noqa: S310 - of `checked`
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
            answer.read(1024)
    except urllib.error.HTTPError as error:
        with error:
            after = error.headers.get("Retry-After", "")
            is_final = 400 <= error.code < 500 and error.code not in {408, 425, 429}
            retry_after_s = float(after) if after.isdigit() else None
            raise NotDeliveredError(f"answered {error.code}", retry_after_s, is_final=is_final) from None
    except OSError as error:
        raise NotDeliveredError(f"not reached: {error}") from error


def _rfc3339(at_s: Seconds) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat().replace("+00:00", "Z")
