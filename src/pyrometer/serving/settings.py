"""How a model is served, from flags, code or `[tool.pyrometer.serve]` in `pyproject.toml`; what is given wins over the file.

::

    [tool.pyrometer.serve]
    latency = "50ms"          # of a batch; with the memory it decides how many rows a batch holds
    wait = "10ms"             # how long a request waits for others, where flush-idle = false
    hang = "30s"              # a batch that takes longer is given up
    drain = "30s"             # how long accepted requests may take once the server is asked to end
    most-body = "64MiB"
    most-memory = "6GiB"      # resident; beyond, it answers what it accepted and ends
    threads = 4
    replicas = 2              # processes that serve the model where --cluster is given, each with so many threads
    gpus = 0                  # that each of them is given
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pyrometer.hardware.cpu import allowed_cpus
from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import Record, doc
from pyrometer.serving.batching.policy import BatchPolicy
from pyrometer.settings import load_table, parse_bytes, parse_duration, require

TOKEN = "PYROMETER_SERVE_TOKEN"  # noqa: S105 - the name of the variable
"""Where the token comes from."""
_SPELLED = {
    "latency": ("latency_s", parse_duration),
    "memory": ("memory_bytes", parse_bytes),
    "wait": ("wait_s", parse_duration),
    "starvation": ("starvation_s", parse_duration),
    "hang": ("hang_s", parse_duration),
    "drain": ("drain_s", parse_duration),
    "slow": ("slow_s", parse_duration),
    "budget": ("budget_s", parse_duration),
    "calibrate": ("calibrate_s", parse_duration),
    "most-body": ("most_body_bytes", parse_bytes),
    "most-memory": ("most_memory_bytes", parse_bytes),
}


class ServeSettings(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is served, where, and within which limits.

    Raises:
        InputError: a value outside its legal range.
    """

    name: Annotated[str, doc("of the model in paths; by default that of the target")] = ""
    version: Annotated[str, doc("of the model in paths")] = "1"
    host: Annotated[str, doc("address to listen on; another than loopback needs a token")] = "127.0.0.1"
    port: Annotated[int, doc("0 takes a free one")] = 8000
    batch: Annotated[int | None, doc("rows of a batch; found by search where it is not given")] = None
    most_batch: Annotated[int, doc("larger batches are not looked for")] = 64
    latency_s: Annotated[Seconds, doc("that a batch may take in the model")] = 0.050
    memory_bytes: Annotated[
        Bytes | None, doc("that a batch may take at its peak; by default what is free")
    ] = None
    wait_s: Annotated[Seconds, doc("that a request waits for others while the model is free")] = 0.010
    flush_idle: Annotated[bool, doc("a free model takes what waits at once")] = True
    most_waiting: Annotated[int, doc("rows in the queue; beyond, requests are refused with 429")] = 1024
    starvation_s: Annotated[Seconds, doc("what has waited so long goes first")] = 1.0
    threads: Annotated[int | None, doc("that torch computes with; by default all cores but one")] = None
    hang_s: Annotated[Seconds, doc("a batch that takes longer is given up")] = 30.0
    drain_s: Annotated[Seconds, doc("for accepted requests, once the server is asked to end")] = 30.0
    most_body_bytes: Annotated[Bytes, doc("of a request")] = 64 << 20
    most_memory_bytes: Annotated[
        Bytes | None,
        doc("of resident memory, before the server ends as at SIGTERM; by default 95 % of its container's"),
    ] = None
    slow_s: Annotated[
        Seconds, doc("for the headers of a request, and for its body beside what its size takes")
    ] = 10.0
    budget_s: Annotated[Seconds, doc("for timing batches before the first request")] = 5.0
    calibrate_s: Annotated[Seconds, doc("that a plan serves some of its requests for")] = 5.0
    tolerance: Annotated[float, doc("largest relative error of a recipe's outputs")] = 0.03
    replicas: Annotated[int, doc("processes that serve the model, on a cluster")] = 2
    gpus: Annotated[float, doc("GPUs that each replica is given, on a cluster")] = 0.0

    def __post_init__(self) -> None:
        """Refuse what no server could do."""
        require(0 <= self.port < 65536, "serve: port", self.port, "0 to 65535")
        require(self.batch is None or self.batch >= 1, "serve: batch", self.batch, "at least 1")
        require(self.most_batch >= 1, "serve: most_batch", self.most_batch, "at least 1")
        require(self.threads is None or self.threads >= 1, "serve: threads", self.threads, "at least 1")
        require(self.replicas >= 1, "serve: replicas", self.replicas, "at least 1")
        require(self.gpus >= 0, "serve: gpus", self.gpus, "0 or more")
        for field in ("latency_s", "hang_s", "drain_s", "slow_s", "budget_s", "calibrate_s"):
            require(getattr(self, field) > 0, f"serve: {field}", getattr(self, field), "above 0")
        require(
            self.most_body_bytes >= 1024, "serve: most_body_bytes", self.most_body_bytes, "at least 1 KiB"
        )
        most = self.most_memory_bytes
        require(most is None or most >= 1 << 20, "serve: most_memory_bytes", most, "at least 1 MiB")
        for part in ("name", "version"):
            text = getattr(self, part)
            legal = all(letter.isalnum() or letter in "._-" for letter in text)
            require(
                legal, f"serve: {part}", text, "letters, digits, '.', '_' and '-', since it stands in paths"
            )

    def policy(self, most_rows: int) -> BatchPolicy:
        """When batches of so many rows are closed."""
        return BatchPolicy(
            most_rows=most_rows,
            wait_s=self.wait_s,
            flush_idle=self.flush_idle,
            most_waiting=max(self.most_waiting, most_rows),
            starvation_s=self.starvation_s,
        )

    @property
    def computing_threads(self) -> int:
        """The loop that reads requests needs a core of its own."""
        return self.threads or max(1, len(allowed_cpus()) - 1)


def load_serve_settings(cwd: Path, **given: Any) -> ServeSettings:
    """The settings of the project in a folder, under those that are given and not None.

    Raises:
        InputError: an unreadable file, an unknown key or a bad value.
    """
    return load_table(ServeSettings, "serve", cwd, given, spelled=_SPELLED)
