"""A cluster of Ray, as `--cluster` names it: the one place where we connect to one; Ray is imported here alone, and late.

::

    local                     a Ray of this command's own, on this machine, that ends with it
    ray://HOST:10001          Ray's client port of a cluster
    HOST:6379, auto           from one of the cluster's machines
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pyrometer.errors import InputError, UsageError
from pyrometer.quantity import Seconds

LOCAL = "local"
FORMS = "ray://HOST:10001, HOST:6379 or auto on one of the cluster's machines, or local"
REACH_S: Seconds = 5.0
STORE_BYTES = 256 << 20
"""Of a local Ray: only small answers go through its store of objects."""

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
}
"""Nothing is reported to anybody, GPUs stay visible to what asks for none, and of workers that die only we tell: Ray does on stdout."""


def require_cluster(address: str) -> None:
    """Find out at once what would fail late: whether Ray is installed, and whether anything answers at an address.

    Ray itself tries for minutes, and may end the process.

    Raises:
        UsageError: Ray is not installed.
        InputError: the address is none, or nothing answers there.
    """
    from importlib.util import find_spec

    if find_spec("ray") is None:
        raise UsageError(
            "--cluster needs ray, which is not installed; install it by pip install 'pyrometer[cluster]'"
        )
    host, port = _parsed(address)
    if not host:
        return
    try:
        socket.create_connection((host, port), timeout=REACH_S).close()
    except OSError as error:
        raise InputError(
            f"--cluster {address}: nothing answers there ({error.strerror or error}); start a head by `ray start --head`, "
            "or name the address that it printed"
        ) from error


def host_of(address: str) -> str:
    """The host in an address; empty where it names none.

    >>> host_of("ray://head:10001"), host_of("10.0.0.1:6379"), host_of("local")
    ('head', '10.0.0.1', '')

    Raises:
        InputError: it is no address of a cluster.
    """
    return _parsed(address)[0]


@contextlib.contextmanager
def connected(
    address: str,
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    cores: int | None = None,
) -> Iterator[Any]:
    """Ray's module, connected; a local Ray is started, and ends with the block.

    Args:
        address: as `--cluster` has it.
        folder: of which our processes on other machines get a copy to start in, so that targets mean there what they mean here.
        environment: variables of the processes that do our work.
        cores: of a local Ray; by default those that this process may use.

    Raises:
        UsageError: Ray is not installed.
        InputError: the cluster cannot be reached, or refuses the connection.
    """
    require_cluster(address)
    with _quiet():  # read as it is imported
        import ray

    if ray.is_initialized():  # by the program that calls us: its Ray is ours, too, and stays
        yield ray
        return
    _connect(ray, address, _options(address, folder, dict(environment or {}), cores))
    try:
        yield ray
    finally:
        ray.shutdown()


def _connect(ray: Any, address: str, options: dict[str, Any]) -> None:
    """Connect; a Ray of ours that was not there within its 30 s, as on a busy machine, is started twice more."""
    for is_last in (False, False, True) if address == LOCAL else (True,):
        try:
            with _quiet():
                ray.init(address, **options)
        except Exception as error:
            if is_last or "timed out during startup" not in str(error):
                token = (
                    ""
                    if address == LOCAL
                    else "; where the cluster asks for Ray's token, set RAY_AUTH_MODE=token"
                )
                raise InputError(f"--cluster {address}: {_first_line(error)}{token}") from error
        else:
            return


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Variables for what Ray starts, which hands them on."""
    added = {name: value for name, value in _QUIET.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def _options(
    address: str, folder: Path | None, environment: dict[str, str], cores: int | None
) -> dict[str, Any]:
    runtime: dict[str, Any] = {"env_vars": environment} if environment else {}
    if folder is not None and address != LOCAL:
        runtime["working_dir"] = str(folder)
    common = {"log_to_driver": False, "logging_level": "ERROR", "runtime_env": runtime}
    if address != LOCAL:
        return common
    return common | {
        "include_dashboard": False,
        "num_cpus": cores,
        "object_store_memory": STORE_BYTES,
        "_node_ip_address": "127.0.0.1",
    }


def _parsed(address: str) -> tuple[str, int]:
    if address in {LOCAL, "auto"}:
        return "", 0
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not (colon and host and port.isdigit() and 0 < int(port) < 65536) or "/" in host:
        raise InputError(f"--cluster {address}: is no address of a cluster; legal is {FORMS}")
    return host, int(port)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
