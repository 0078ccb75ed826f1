"""What a monitor does, from code or `[tool.pyrometer.monitor]` in `pyproject.toml`; what is given in code wins.

::

    [tool.pyrometer.monitor]
    model = "perception"
    version = "v2.1"
    folder = ".pyrometer/monitor"     # JSON lines, the default; "" writes none
    port = 9464                       # http://127.0.0.1:9464/metrics
    processes = "/run/perception"     # workers that one of them tells of
    redis = "redis://localhost/0"
    otlp = "http://localhost:4318/v1/metrics"
    limit = "50ms"
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import Record, doc
from pyrometer.settings import load_table, parse_bytes, parse_duration, require

TOKEN = "PYROMETER_MONITOR_TOKEN"  # noqa: S105 - the name of the variable
"""Where the token comes from that a request for `/metrics` needs."""
_SPELLED = {
    "limit": ("limit_s", parse_duration),
    "tick": ("tick_s", parse_duration),
    "file-size": ("file_bytes", parse_bytes),
}


class MonitorSettings(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is watched, how closely, and where it is told.

    Raises:
        InputError: a value outside its legal range.
    """

    model: Annotated[str, doc("name of what is watched")] = ""
    version: Annotated[str, doc("of the model, as the user counts")] = ""
    device: Annotated[str, doc("where it runs: cpu, or cuda:0, whose times and memory are then told")] = ""
    labels: Annotated[dict[str, str], doc("of every series of this process")] = {}
    sample_every: Annotated[int, doc("one call of so many is looked at closely; a power of two")] = 64
    limit_s: Annotated[Seconds | None, doc("a call that takes longer is told at once")] = None
    check_outputs: Annotated[bool, doc("look for NaN, infinities and the range in sampled outputs")] = True
    tick_s: Annotated[Seconds, doc("how often figures are added up and sent")] = 1.0
    capacity: Annotated[int, doc("calls that may wait between two drains, per function")] = 65536
    most_series: Annotated[int, doc("series of one metric; further values of labels count as other")] = 100
    most_events: Annotated[int, doc("calls told in full per tick")] = 50
    folder: Annotated[str, doc("of the JSON lines; empty writes none")] = ".pyrometer/monitor"
    file_bytes: Annotated[Bytes, doc("a file of JSON lines is rotated beyond")] = 16 << 20
    num_files: Annotated[int, doc("files that are kept of each kind and process")] = 4
    port: Annotated[int | None, doc("of /metrics; 0 takes a free one, null serves none")] = None
    address: Annotated[str, doc("that /metrics is served on; another than loopback needs a token")] = (
        "127.0.0.1"
    )
    processes: Annotated[
        str, doc("folder that several processes of one service share; empty for one alone")
    ] = ""
    redis: Annotated[str, doc("URL of a Redis that gets every tick; empty for none")] = ""
    stream: Annotated[str, doc("name of the stream there")] = "pyrometer:ticks"
    stream_length: Annotated[int, doc("ticks that the stream keeps")] = 10_000
    otlp: Annotated[str, doc("where metrics go by OTLP over HTTP; empty for nowhere")] = ""

    def __post_init__(self) -> None:
        """Refuse what no monitor could do."""
        every = self.sample_every
        require(
            every > 0 and not every & (every - 1),
            "monitor: sample_every",
            every,
            "a power of two, such as 64",
        )
        require(
            self.limit_s is None or self.limit_s > 0,
            "monitor: limit_s",
            self.limit_s,
            "above 0, such as 0.05",
        )
        require(
            0.01 <= self.tick_s <= 3600, "monitor: tick_s", self.tick_s, "0.01 to 3600 seconds, such as 1"
        )
        for name in ("capacity", "most_series", "file_bytes", "num_files", "stream_length"):
            require(getattr(self, name) > 0, f"monitor: {name}", getattr(self, name), "1 or more")
        require(self.port is None or 0 <= self.port < 65536, "monitor: port", self.port, "0 to 65535")


def load_monitor_settings(cwd: Path, **given: Any) -> MonitorSettings:
    """The settings of the project in a folder, under those that are given and not None.

    Raises:
        InputError: an unreadable file, an unknown key or a bad value.
    """
    return load_table(MonitorSettings, "monitor", cwd, given, spelled=_SPELLED, folders=["folder"])
