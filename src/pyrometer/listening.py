"""Addresses that servers of ours listen on, and the token that keeps other machines out."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Mapping

from pyrometer.errors import InputError, UsageError

LEAST_TOKEN = 16
"""Characters of a token that somebody chose."""
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.2"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    return host in LOOPBACK or (host.startswith("127.") and host.replace(".", "").isdigit())


def token_from(environ: Mapping[str, str], variable: str) -> str | None:
    """The token that requests need, where one is set: a flag would show it to everybody on the machine.

    Raises:
        InputError: it is too short to keep anybody out.
    """
    token = environ.get(variable) or None
    if token is not None and len(token) < LEAST_TOKEN:
        raise InputError(
            f"{variable}: got {len(token)} characters; legal are {LEAST_TOKEN} or more, such as those of `openssl rand -hex 32`"
        )
    return token


def require_token(host: str, token: str | None, variable: str, *, name: str = "--host") -> None:
    """Refuse an address that other machines can reach where no token keeps them out; `name` is what gave it.

    Raises:
        UsageError: there is none.
    """
    if token is None and not is_loopback(host):
        raise UsageError(
            f"{name} {host}: other machines could connect; set {variable} to a token that clients send, "
            "such as that of `openssl rand -hex 32`"
        )


def is_token(shown: bytes, token: str) -> bool:
    """Whether a header `Authorization` brings the token; takes as long for a near miss as for any other.

    >>> is_token(b"Bearer 0123456789abcdef", "0123456789abcdef"), is_token(b"", "0123456789abcdef")
    (True, False)
    """
    return secrets.compare_digest(shown, f"Bearer {token}".encode())


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket that is bound and does not listen yet.

    Raises:
        InputError: the address is none of this machine, or the port is taken.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InputError(
            f"--host {host}: {error.strerror}; legal is an address of this machine, such as 127.0.0.1"
        ) from error
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
    except OSError as error:
        made.close()
        raise InputError(
            f"{host}:{port}: {error.strerror}; pass another --port, or 0 for any that is free"
        ) from error
    return made


def url_of(bound: socket.socket) -> str:
    """How a client of this machine reaches a socket."""
    host, port = bound.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{shown}:{port}"
