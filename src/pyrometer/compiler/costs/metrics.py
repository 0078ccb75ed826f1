"""What `compilation_metrics` say of time: the one source where a log holds no begin and end events."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from pyrometer.compiler.costs.events import Lane, Span, nanoseconds
from pyrometer.compiler.log import CompileLog, LogEntry

FORWARD, BACKWARD = "compilation_metrics", "bwd_compilation_metrics"

_OUTERMOST = {FORWARD: "entire_frame_compile", BACKWARD: "entire_backward_compile"}

_INSIDE = (
    ("gc_time_us", "gc", ()),
    ("aot_autograd_cumulative_compile_time_us", "backend_compile", ()),
    ("pre_grad_pass_time_us", "_recursive_pre_grad_passes", ("backend_compile",)),
    ("joint_graph_pass_time_us", "_recursive_joint_graph_passes", ("backend_compile",)),
    ("inductor_cumulative_compile_time_us", "inductor_compile", ("backend_compile",)),
    ("post_grad_pass_time_us", "_recursive_post_grad_passes", ("inductor_compile", "backend_compile")),
    ("inductor_code_gen_cumulative_compile_time_us", "code_gen", ("inductor_compile", "backend_compile")),
    ("triton_compile_time_us", "async_compile.wait", ("code_gen", "inductor_compile", "backend_compile")),
)
"""Fields of the metrics, the span that each is the length of, and in which it lies: the first that is told.

`triton_compile_time_us` is the time spent waiting for compile threads, whichever compiler runs on them.
"""


def spans_of_metrics(entry: LogEntry) -> list[Span]:
    """The compilation of one entry as spans, the outermost first; how long is told, when inside of it is not."""
    fields = entry.fields
    start_us, end_us = _interval_us(fields)
    if start_us is None or end_us is None:
        return []
    lane = Lane(entry.thread, is_worker=False)
    outermost = Span(
        _OUTERMOST[entry.kind], entry.compile_id, lane, nanoseconds(start_us), nanoseconds(end_us)
    )
    made, filled = {"": outermost}, {"": outermost.start_ns}
    for key, name, surrounding in _INSIDE:
        length_us = number(fields, key)
        parent = next((found for found in surrounding if found in made), "")
        start_ns = filled[parent]
        end_ns = min(start_ns + nanoseconds(length_us or 0), made[parent].end_ns)
        if end_ns <= start_ns:
            continue
        made[name] = Span(name, entry.compile_id, lane, start_ns, end_ns)
        filled[name], filled[parent] = start_ns, end_ns
    return list(made.values())


def observing_s(log: CompileLog) -> float | None:
    """How long torch took to write the log, of what it compiled; `None` if it does not tell.

    Torch adds up per frame and compile number, from a forward to its backward, and on across resets; so that each entry
    tells its difference to the one before of that name. Never more than the compilation took.
    """
    before: dict[tuple[int | None, int | None], float] = {}
    found = None
    for entry in log.of(FORWARD, BACKWARD):
        fields = entry.fields
        sum_us = number(fields, "structured_logging_overhead_us")
        if sum_us is None or entry.compile_id is None:
            continue
        key = entry.compile_id.frame, entry.compile_id.compile
        grown_us = sum_us - before.get(key, 0.0)
        before[key] = sum_us
        start_us, end_us = _interval_us(fields)
        most_us = math.inf if start_us is None or end_us is None else end_us - start_us
        found = (found or 0.0) + min(max(grown_us, 0.0), most_us) / 1e6
    return found


def number(told: Mapping[str, Any], *keys: str) -> float | None:
    """The first of some fields that holds a finite number.

    >>> number({"a": None, "b": 2}, "a", "b"), number({"a": "2"}, "a")
    (2.0, None)
    """
    return next(_numbers(told, keys), None)


def whole(told: Mapping[str, Any], key: str) -> int | None:
    """A field that counts something.

    >>> whole({"a": 2}, "a"), whole({"a": None}, "a")
    (2, None)
    """
    found = number(told, key)
    return None if found is None else int(found)


def _numbers(told: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[float]:
    for key in keys:
        value = told.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e16:
            yield float(value)


def _interval_us(told: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """From when to when; the names are those of torch 2.6 and later, then of earlier ones."""
    start_us = number(told, "start_time_us")
    if start_us is None:
        start_s = number(told, "start_time")
        start_us = None if start_s is None else start_s * 1e6
    end_us, length_us = number(told, "end_time_us"), number(told, "duration_us")
    length_s = number(told, "entire_frame_compile_time_s")
    if length_us is None and length_s is not None:
        length_us = length_s * 1e6
    if start_us is not None and length_us is not None:
        end_us = start_us + length_us
    return (None, None) if start_us is None or end_us is None or end_us < start_us else (start_us, end_us)
