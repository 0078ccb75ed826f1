"""Answers: pages from templates, JSON from records, and what is said when something cannot be shown."""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Concatenate, ParamSpec, TypeVar

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from pyrometer.dashboard.documents import Refused
from pyrometer.dashboard.spark import spark
from pyrometer.errors import IncomparableError, InputError, PyrometerError, StoreError
from pyrometer.quantity import format_bytes, format_interval, format_seconds, time_unit
from pyrometer.record import Record, to_json
from pyrometer.report.facts.run_lines import commit, taken
from pyrometer.report.inline import inline
from pyrometer.report.payloads.beside import texts
from pyrometer.report.templating import environment
from pyrometer.store.run import DamagedRunError
from pyrometer.version import __version__

P = TypeVar("P")
Q = ParamSpec("Q")

ASSETS = {"report.css": "text/css", "report.js": "text/javascript", "theme.js": "text/javascript"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data: blob:; worker-src blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
REPORT_POLICY = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""Beside the one in the report itself, which admits its own script and nothing from outside."""


class AbsentError(InputError):
    """What an address names is not in the store."""


class EndedError(AbsentError):
    """A run that was going on has left nothing."""


STATUS: tuple[tuple[type[PyrometerError], int, str], ...] = (
    (EndedError, 404, "This run has ended"),
    (AbsentError, 404, "Not in this store"),
    (DamagedRunError, 422, "This run is damaged"),
    (StoreError, 503, "The store cannot be read"),
    (IncomparableError, 409, "These runs must not be compared"),
    (InputError, 422, "This cannot be shown"),
    (PyrometerError, 500, "Something went wrong"),
)


def answering(
    handler: Callable[Concatenate[P, Request, Q], Response],
) -> Callable[Concatenate[P, Request, Q], Response]:
    """Make a handler say in a sentence what went wrong; nothing that it raises leaves it."""

    @functools.wraps(handler)
    def safe(pages: P, request: Request, /, *given: Q.args, **named: Q.kwargs) -> Response:
        try:
            return handler(pages, request, *given, **named)
        except PyrometerError as error:
            status, title = next((code, said) for kind, code, said in STATUS if isinstance(error, kind))
            return refused(request, status, title, str(error))
        except Exception as error:  # noqa: BLE001 - a fault of our own is told in one line too
            fault = f"internal fault, {type(error).__name__}: {error}"
            sys.stderr.write(f"error: {request.url.path!r}: {fault!r}\n")  # no control characters of others
            return refused(request, 500, "Something went wrong", f"{fault}; please report it")

    return safe


def refused(request: Request, status: int, title: str, sentence: str) -> Response:
    """Say that something cannot be answered: as JSON under `/api`, elsewhere as a page."""
    if request.url.path.startswith("/api/"):
        return as_json(Refused(error=sentence), status)
    return as_page("message.html.j2", status, title=title, sentence=sentence)


def as_json(record: Record, status: int = 200) -> Response:
    """A record as JSON; what of a text is not UTF-8 is replaced."""
    return Response(to_json(record), status, media_type="application/json")


def as_page(template: str, status: int = 200, **context: Any) -> Response:
    """A page of ours."""
    html = _templates().get_template(template).render(context)
    return HTMLResponse(html.encode("utf-8", "replace"), status, {"content-security-policy": POLICY})


def as_report(html: str, others: Mapping[str, str], *, target: str | None = None) -> Response:
    """A report with the way back to the list above it.

    Args:
        html: as it stands in a file.
        others: title and address of what else is offered.
        target: whose trend is offered as well.
    """
    way = _templates().get_template("way.html.j2").render(target=target, others=others.items())
    # The first tag of this name is ours: whatever a user wrote is escaped, or stands behind it.
    head, body, rest = html.partition("<body>")
    if not body:
        raise PyrometerError("the report has no place for the way back to the list")
    return HTMLResponse(f"{head}{body}\n{way}{rest}", headers={"content-security-policy": REPORT_POLICY})


def asset(name: str) -> Response:
    """A style sheet or script; its address changes with its content, so that it may be kept for good."""
    if name not in ASSETS:
        raise AbsentError(f"there is no {name!r} here")
    kept = {"cache-control": "private, max-age=31536000, immutable"}
    return Response(str(inline(name).text), headers=kept, media_type=ASSETS[name])


@cache
def _address(name: str) -> str:
    digest = hashlib.sha256(inline(name).text.encode()).hexdigest()
    return f"/assets/{name}?v={digest[:16]}"


@cache
def _templates() -> jinja2.Environment:
    templates = environment("pyrometer.dashboard")
    templates.filters |= {
        "bytes": format_bytes,
        "commit": commit,
        "seconds": format_seconds,
        "interval": _interval,
        "spark": spark,
        "taken": taken,
    }
    templates.globals |= {"asset": _address, "texts": texts, "version": __version__}
    return templates


def _interval(low_s: float | None, high_s: float | None) -> str:
    if low_s is None and high_s is None:
        return "–"
    scale, unit = time_unit(next(end for end in (high_s, low_s) if end is not None))
    return f"{format_interval(low_s, high_s, scale)} {unit}"
