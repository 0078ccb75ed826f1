"""The driver's side: one application of Ray Serve made from what `pyrometer serve` would serve here, for as long as the command runs."""

from __future__ import annotations

import contextlib
import logging
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from pyrometer.cluster import LOCAL, connected, host_of
from pyrometer.errors import InputError, PyrometerError, UserProgramError
from pyrometer.listening import bound_socket, is_loopback, require_token
from pyrometer.quantity import Bytes, Seconds
from pyrometer.serving.deployment import Candidate
from pyrometer.serving.replicas.replica import Order, Replica, application
from pyrometer.serving.settings import TOKEN, ServeSettings
from pyrometer.serving.starting.preparing import Say
from pyrometer.serving.starting.source import Source
from pyrometer.store.place import is_server
from pyrometer.tuning.shapes.axes import Dims

EVERYWHERE = "0.0.0.0"  # noqa: S104 - needs a token, see below
REPEATED_BYTES: Bytes = 1 << 18
"""The proxy holds a request of so many bytes until it is answered, and sends it to another replica where its first one dies."""
MOST_DEATHS = 3
"""Of replicas that start, before the first one runs."""
_DIED = "ActorDiedError"
POLL_S: Seconds = 0.2
MOST_AT_ONCE = 100_000
"""Beyond all queues of ours: these decide what is refused, with 429, and say when to come again."""

# What Ray answers with a plain 500, since a replica died and could not be asked again or none is left, is a 503 that says when to come again;
# answers of ours are JSON.
_AGAIN = 'content-type application/json string \'{"error": "no replica could answer; send the request again"}\' hdr retry-after 1'
_NEVER_500 = f"""
    http-error status 502 {_AGAIN}
    http-error status 503 {_AGAIN}
    http-after-response set-status 503 reason "Service Unavailable" if {{ status 502 }}
    http-response return status 503 {_AGAIN} if {{ status 500 }} !{{ res.hdr(content-type) -m beg application/json }}
    default-server"""
# A model answers the same twice, so what a dying replica did not answer is asked again; only that: after a 503 it is the client's turn.
# HAProxy can repeat what it holds as a whole. Ray has no setting for that, nor for its errors: lines after the first go into its configuration as they are.
_PROXY = {
    "RAY_SERVE_ENABLE_HA_PROXY": "1",
    "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1",
    "RAY_SERVE_HAPROXY_RETRY_ON": "conn-failure empty-response junk-response\n    option http-buffer-request",
    "RAY_SERVE_HAPROXY_HEALTH_CHECK_INTER": f"5s{_NEVER_500}",
    "RAY_SERVE_HAPROXY_RETRIES": "10",
    "RAY_SERVE_HAPROXY_TUNE_BUFSIZE": str(REPEATED_BYTES),
    # A machine may be busy with starting replicas: with 5 s Ray ends proxies that are about to be ready.
    "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "60",
    # Ray waits so long before an ending replica looks whether anybody still asks; its own proxies have left it by then.
    "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": "3",
}
_RAISED = re.compile(r"pyrometer\.errors\.(\w+): (.+)")


@contextlib.contextmanager
def deployed(
    address: str,
    source: Source,
    settings: ServeSettings,
    buckets: Dims,
    *,
    candidate: Candidate | None = None,
    token: str | None = None,
    say: Say = lambda _: None,
) -> Iterator[str]:
    """Serve a model on a cluster within the block; gives the screen of one of its replicas.

    Args:
        address: of the cluster.
        source: what is served.
        settings: how; `replicas` of it.
        buckets: sizes that vary.
        candidate: another version beside it, in each replica.
        token: that requests need; obligatory but for a local Ray on loopback.
        say: is told how far it is.

    Raises:
        PyrometerError: the cluster or the model cannot be used; says why.
    """
    is_local = address == LOCAL
    host = settings.host if is_local or not is_loopback(settings.host) else EVERYWHERE
    require_token(host, token, TOKEN)
    if candidate is not None:
        _require_followable(candidate, settings.version, address, is_local=is_local)
    settings = replace(
        settings, host=host, port=_port(settings, is_local=is_local), threads=settings.threads or 1
    )
    url = f"http://{host_of(address) or '127.0.0.1'}:{settings.port}"
    order = Order(source, settings, buckets, candidate, token, url, str(Path.cwd()) if is_local else None)
    name = settings.name or source.name()
    cores = settings.replicas * (settings.threads or 1)
    say(f"connecting to {'a Ray of its own' if is_local else address}")
    with connected(address, folder=Path.cwd(), environment=_PROXY, cores=cores) as ray:
        from ray import serve

        logging.getLogger("ray.serve").setLevel(logging.ERROR)
        has = ray.cluster_resources().get("CPU", 0)
        if has < cores:
            say(f"waiting for {cores} cores, of which the cluster has {has:g}")
        with told_plainly(name):
            serve.start(proxy_location="EveryNode", http_options={"host": host, "port": settings.port})
        try:
            say(f"starting {settings.replicas} replicas, each of which proves and warms the model")
            with told_plainly(name):
                target = serve.RunTarget(_bound(serve, order, name), name, logging_config=_SILENT)
                [handle] = serve.run_many([target], wait_for_applications_running=False)
                yield _screen_once_started(serve, name, handle, say)
        finally:
            # Ray waits for what was accepted, and only then ends its replicas.
            serve.shutdown() if is_local else serve.delete(name)


_SILENT = {"log_level": "ERROR", "enable_access_log": False}


def _bound(serve: Any, order: Order, name: str) -> Any:
    settings = order.settings
    made = serve.deployment(
        serve.ingress(application)(Replica),
        name=name,
        num_replicas=settings.replicas,
        ray_actor_options={"num_cpus": settings.threads, "num_gpus": settings.gpus},
        max_ongoing_requests=MOST_AT_ONCE,
        graceful_shutdown_timeout_s=settings.drain_s,
        max_constructor_retry_count=MOST_DEATHS,
    )
    return made.bind(order)


def _screen_once_started(serve: Any, name: str, handle: Any, say: Say) -> str:
    """What a replica prints once all of them answer; one that dies before is told, and Ray starts another.

    Raises:
        UserProgramError: they die each time.
        RuntimeError: what a replica raised, which it would raise again, or what keeps Ray from starting any.
    """
    known = ""
    while (found := serve.status().applications[name]).status != "RUNNING":
        told = found.deployments[name].message if name in found.deployments else found.message
        if found.status == "DEPLOY_FAILED" and _DIED in told:
            raise UserProgramError(
                f"{name}: replicas died {MOST_DEATHS} times while they loaded the model; see whether it ends its process or takes all "
                f"memory, by pyrometer serve without --cluster"
            )
        if found.status == "DEPLOY_FAILED" or _RAISED.search(told):
            raise RuntimeError(told)
        if told != known and _DIED in told:
            say("a replica died while it started; another one starts in its place")
        known = told
        time.sleep(POLL_S)
    shown: str = handle.screen.remote().result()
    return shown


def _require_followable(candidate: Candidate, version: str, address: str, *, is_local: bool) -> None:
    """Find out before Ray is asked for anything whether replicas could follow a rollout.

    Raises:
        PyrometerError: they could not.
    """
    if candidate.rollout is not None and not is_local and not is_server(candidate.rollout.location):
        raise InputError(
            f"--rollout {candidate.rollout.name} and --cluster {address}: replicas on other machines cannot read the folder "
            f"{candidate.rollout.location}; keep the rollout in postgresql:// or redis:// (store in [tool.pyrometer], or PYROMETER_STORE)"
        )
    candidate.agent(version)


def _port(settings: ServeSettings, *, is_local: bool) -> int:
    if not is_local and settings.port == 0:
        raise InputError("--port 0: all machines of a cluster listen on one port; name it")
    if not is_local:
        return settings.port
    with bound_socket(settings.host, settings.port) as found:
        return int(found.getsockname()[1])


@contextlib.contextmanager
def told_plainly(name: str) -> Iterator[None]:
    """What a replica raised, in its words; what Ray raised, in one line.

    Raises:
        PyrometerError: with that.
    """
    try:
        yield
    except PyrometerError:
        raise
    except Exception as error:
        raised = _RAISED.findall(str(error))
        if raised:
            kind, text = raised[-1]
            raise (UserProgramError if kind == "UserProgramError" else InputError)(text) from error
        first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise InputError(
            f"{name}: Ray cannot serve it: {first}; `ray status` shows what the cluster has"
        ) from error
