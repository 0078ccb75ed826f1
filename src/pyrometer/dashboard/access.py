"""Who may read: one guard in front of every route.

The store says what its owner measures, so that a page of the dashboard is for the one who started it: not for others on
the machine, who may connect to the port, and not for a site that the same browser shows, which may send requests there
(the cookie is not sent along) or point a name of its own at it (its name is not one of ours).
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterable
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

import psutil
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pyrometer.listening import LOOPBACK, is_loopback

_EVERYWHERE = {"0.0.0.0", "::", ""}  # noqa: S104 - to recognise them
_ALWAYS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "x-frame-options": "DENY",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
DEFAULT_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def names_of(host: str) -> frozenset[str]:
    """What a browser may call a server that listens on this address."""
    if is_loopback(host):
        return LOOPBACK | {host}
    if host not in _EVERYWHERE:
        return LOOPBACK | {host.lower()}
    own = {socket.gethostname().lower(), socket.getfqdn().lower()}
    with suppress(OSError):
        own |= {address.address for found in psutil.net_if_addrs().values() for address in found}
    return LOOPBACK | own


class Guard:
    """Lets through what carries the token, calls us by a name of ours and only reads; sets the headers of all answers."""

    def __init__(self, app: ASGIApp, token: str, names: Iterable[str]) -> None:
        self._app = app
        self._token = token.encode()
        self._names = frozenset(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or let it through."""
        if scope["type"] != "http":
            return  # neither websockets nor anything else
        refused = self._refusal(scope)

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _ALWAYS.items():
                    headers[name] = value
                headers.setdefault("content-security-policy", DEFAULT_POLICY)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        await (refused or self._app)(scope, receive, sending)

    def _refusal(self, scope: Scope) -> Response | None:
        """Why a request is not answered, or its way to the cookie; `None` when it may pass."""
        headers = Headers(scope=scope)
        host = headers.getlist("host")
        if len(host) != 1 or _name(host[0]) not in self._names:
            return PlainTextResponse("This server does not go by that name.\n", 421)
        if scope["method"] != "GET" and not _writes(scope, headers):
            said = "Only GET: nothing but notes and baselines can be changed here, from the page of a run.\n"
            return PlainTextResponse(said, 405, {"allow": "GET"})
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        shown = [value for name, value in query if name == "token"]
        cookie = f"pyrometer-{_port(host[0])}"
        if shown:
            if not self._is_token(shown[0]):
                return _locked()
            rest = [(name, value) for name, value in query if name != "token"]
            return self._welcome(scope, rest, cookie, from_elsewhere=_from_elsewhere(headers))
        kept = cookie_parser(headers.get("cookie", "")).get(cookie, "")
        return None if self._is_token(kept) else _locked()

    def _is_token(self, shown: str) -> bool:
        return secrets.compare_digest(shown.encode("utf-8", "surrogateescape"), self._token)

    def _welcome(
        self, scope: Scope, query: list[tuple[str, str]], cookie: str, *, from_elsewhere: bool
    ) -> Response:
        """The token moves from the address, where it can be seen and copied, to a cookie."""
        # One slash: an address that begins with two is of another server.
        place = quote("/" + scope["path"].lstrip("/")) + (f"?{urlencode(query)}" if query else "")
        # A redirect that began on another site counts as its request, and a strict cookie is not sent with it.
        answer: Any = (
            Response(headers={"refresh": f"0; url={place}"}, media_type="text/html")
            if from_elsewhere
            else RedirectResponse(place, 303)
        )
        answer.set_cookie(cookie, self._token.decode(), httponly=True, samesite="strict")
        return answer  # type: ignore[no-any-return]


def _writes(scope: Scope, headers: Headers) -> bool:
    """Whether a request writes a note, and comes from a page of ours, as browsers tell: without a referrer they name no origin."""
    path = str(scope["path"]).split("/")
    is_note = scope["method"] == "POST" and len(path) == 4 and path[1::2] == ["runs", "note"]
    ours = {headers.get("origin"), headers.get("sec-fetch-site")} & {
        f"http://{headers.get('host')}",
        "same-origin",
    }
    return is_note and bool(ours)


def _locked() -> Response:
    text = "Open the address that `pyrometer ui` printed: its token lets you in.\n"
    return PlainTextResponse(text, 403)


def _from_elsewhere(headers: Headers) -> bool:
    return headers.get("sec-fetch-site", "none") not in {"none", "same-origin"}


def _name(host: str) -> str:
    """The name in a Host header, without its port."""
    name = host.rsplit(":", 1)[0] if host.rsplit(":", 1)[-1].isdigit() else host
    return name.strip("[]").lower()


def _port(host: str) -> str:
    """Cookies know no ports: several dashboards on one machine would take each other's."""
    port = host.rsplit(":", 1)[-1]
    return port if port.isdigit() and port.isascii() else "80"
