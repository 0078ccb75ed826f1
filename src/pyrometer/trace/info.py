"""What a trace file says about itself, and what was found wrong with it."""

from __future__ import annotations

from typing import Annotated, Any

from pyrometer.quantity import Bytes
from pyrometer.record import Record, doc


class DeviceInfo(Record, frozen=True, kw_only=True):
    """One entry of `deviceProperties`."""

    id: int
    name: str = ""
    num_sms: Annotated[int | None, doc("multiprocessors or compute units")] = None
    total_memory_bytes: Bytes | None = None
    compute_capability: Annotated[str | None, doc("such as 9.0, on NVIDIA")] = None
    warp_size: int | None = None
    max_threads_per_sm: int | None = None
    registers_per_sm: int | None = None
    shared_memory_per_sm_bytes: Bytes | None = None


class ProcessGroup(Record, frozen=True, kw_only=True):
    """One entry of `distributedInfo.pg_config`."""

    name: str
    description: str = ""
    backend: str = ""
    size: int | None = None
    ranks: list[int] = []


class Repair(Record, frozen=True, kw_only=True):
    """One kind of damage, mended or not."""

    code: Annotated[
        str,
        doc(
            "truncated, bad_escape, control_character, bare_value, unescaped_quote, bad_utf8, trailing_comma, …"
        ),
    ]
    num_events: Annotated[int, doc("events that were mended and kept")]
    num_lost: Annotated[int, doc("events that could not be mended")] = 0
    first_byte: Annotated[int | None, doc("offset in the uncompressed file")] = None
    message: Annotated[str, doc("one line for people")]


class RankInfo(Record, frozen=True, kw_only=True):
    """Everything about one rank's trace that is not an event."""

    rank: int
    rank_from: Annotated[str, doc("distributedInfo, file name or order of the arguments")] = "order"
    path: str
    raw_bytes: Annotated[Bytes, doc("size of the uncompressed JSON")]
    num_events: Annotated[int, doc("entries of traceEvents that were read, of every kind")]
    num_lost_events: Annotated[
        int, doc("entries that could not be read; at least, when the file is cut off")
    ] = 0
    repaired: list[Repair] = []
    base_ns: Annotated[
        int, doc("unix time at 0 of the file's clock; 0 when the clock is unix time itself")
    ] = 0
    world_size: int | None = None
    backend: str | None = None
    host: str | None = None
    trace_id: str | None = None
    devices: list[DeviceInfo] = []
    groups: list[ProcessGroup] = []
    options: Annotated[dict[str, bool], doc("record_shapes, with_stack, …, where the file says")] = {}
    metadata: Annotated[dict[str, Any], doc("all other keys of the file's head")] = {}
    unknown_categories: Annotated[dict[str, int], doc("events of kind `other`, by category")] = {}
    notes: Annotated[
        list[str], doc("what reading had to do without, such as a cache that cannot be written")
    ] = []
