"""Files that are given for a trace by mistake, told by their first bytes, each with what to do instead."""

from __future__ import annotations

import re
from pathlib import Path

from pyrometer.errors import InputError

WANTED = "a trace is the JSON that torch.profiler's export_chrome_trace writes"

GLOG_LINE = re.compile(rb"^[VDIWEC]\d{4} \d\d:\d\d:\d\d\.\d+ +\S+ +[\w./-]+:\d+\]")
"""How `TORCH_TRACE` and `TORCH_LOGS` lines begin."""

BEGINNINGS = (
    (rb"\x80[\x02-\x05]", "a pickle, such as a memory snapshot; open that with pyrometer memory"),
    (rb"PK\x03\x04", "a zip archive; unpack it, and pass the trace in it"),
    (
        rb"SQLite format 3\x00",
        "an SQLite database, such as Nsight Systems and rocprofv3 write; record the program with pyrometer trace instead",
    ),
    (
        rb"QDSTRM|QDREP|NVIDIA Tegra Profiler",
        "a report of Nsight Systems; record the program with pyrometer trace instead",
    ),
    (
        rb"version https://git-lfs\.github\.com/spec/",
        "a pointer of Git LFS to the file; fetch it with git lfs pull",
    ),
    (
        rb'"?(?:Kind|Index|Name)"?,"?(?:Agent_Id|Queue_Id|KernelName|Domain|Function|Calls|DispatchId|Correlation_Id)\b',
        "a table of rocprof; record the program with pyrometer trace instead",
    ),
    (rb"BZh\d", "compressed with bzip2; unpack it first"),
    (rb"\xfd7zXZ\x00", "compressed with xz; unpack it first"),
    (rb"\xff\xfe|\xfe\xff", "UTF-16 text; save it as UTF-8"),
    (rb"\x7fELF|MZ", "a program"),
    (rb"<!doctype|<html|<\?xml", "a web page; pass the trace that it was made from"),
    (rb"\x0a", "binary, perhaps a Perfetto trace; export it as Chrome JSON"),
)
"""First bytes, as a pattern, and what they tell; the last ones only hold for what is not text."""


_NSIGHT = (".nsys-rep", ".qdrep", ".qdstrm", ".ncu-rep")
_XPLANE = (".xplane.pb",)
_XLA = re.compile(rb'\{\s*"displayTimeUnit"\s*:\s*"ns"\s*,\s*"metadata"\s*:\s*\{\s*"highres-ticks"')
"""How XLA's profiler begins its Chrome JSON."""
_JAX = "a profile of JAX or XLA, which has neither torch's operators nor its launches; open it in XProf"


def refuse_mistaken(path: Path, start: bytes) -> None:
    """Raise with a fitting line when a file cannot be a trace.

    Args:
        path: the file, for the message.
        start: its first block, uncompressed.

    Raises:
        InputError: what the file is instead.
    """
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if path.name.lower().endswith(_NSIGHT):
        raise InputError(
            f"{path}: a report of Nsight, not a trace; record the program with pyrometer trace instead"
        )
    if path.name.lower().endswith(_XPLANE):
        raise InputError(f"{path}: {_JAX}")
    if text[1:2] == b"\0" and text[:1] in {b"{", b"["}:
        raise InputError(f"{path}: UTF-16 text; save it as UTF-8")
    if text[:1] in {b"{", b"["}:
        _refuse_other_json(path, text[:4096])
        return
    raise InputError(f"{path}: not a trace but {_what(start, text)}; {WANTED}")


def _what(start: bytes, text: bytes) -> str:
    if not text:
        return "an empty file; the export did not finish, or the profiler's schedule had ended"
    if GLOG_LINE.match(text):
        return "a log of torch, as TORCH_TRACE writes it; open that with pyrometer compile"
    if start[257:262] == b"ustar":
        return "a tar archive; unpack it, and pass the trace in it"
    for pattern, what in BEGINNINGS:
        if re.match(pattern, start, re.IGNORECASE) and (pattern != rb"\x0a" or _is_binary(start)):
            return what
    return "binary" if _is_binary(start) else "text that is not JSON"


def _is_binary(start: bytes) -> bool:
    return any(byte < 0x20 and byte not in b"\t\n\r\f" for byte in start[:4096])


def _refuse_other_json(path: Path, text: bytes) -> None:
    if _XLA.match(text):
        raise InputError(f"{path}: {_JAX}")
    if b'"traceEvents"' in text:
        return
    if re.match(rb'\{\s*"schema"\s*:\s*"[^"]*chakra', text):
        raise InputError(f"{path}: an execution trace (its nodes have no times), not a profile; {WANTED}")
    if b'"rocprofiler-sdk-tool"' in text:
        raise InputError(f"{path}: results of rocprofv3, not a trace; {WANTED}")
    if b"speedscope.app/file-format-schema" in text:
        raise InputError(f"{path}: a speedscope profile, not a trace; {WANTED}")
