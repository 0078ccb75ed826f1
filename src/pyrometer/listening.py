"""Addresses that servers of ours listen on."""

from __future__ import annotations

import socket

from pyrometer.errors import InputError

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.2"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    return host in LOOPBACK or (host.startswith("127.") and host.replace(".", "").isdigit())


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
