"""What the compiled scanner reads is what msgspec reads, whatever the text; and it never looks beyond the text's end."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from pyrometer import native
from pyrometer.trace.reading import chunks
from pyrometer.trace.reading.chunks import Document
from pyrometer.trace.reading.collector import Collector
from pyrometer.trace.reading.repair_log import RepairLog
from pyrometer.trace.reading.scanning import keys, scan

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.skipif(native.compiled() is None, reason="the compiled module is not built")

ODD_NUMBERS = [
    "1e3", "-0", "-0.0", "0.1234", "123456789012345678901", "9007199254740993", "1712195495522374.379", "01", "1.",
    "9223372036854775807", "9223372036854775808", "5.0", "1e999", "NaN", "-", "8796093022208.125", "0.30000000000000004",
]  # fmt: skip
ODD_VALUES = ['"7"', '"0x1f"', "null", "true", "[]", "{}", '"a\\u00e9b"', '"\\ud83d\\ude00"', '"\\ud800"', '"}, {"', '"\t"', "[1, 2, 3]", "[1, 2]"]  # fmt: skip
VALUES = (
    st.sampled_from(ODD_NUMBERS + ODD_VALUES)
    | st.integers(-(2**40), 2**40).map(str)
    | st.floats(0, 1e9).map(str)
    | st.decimals(-(10**7), 10**7, places=3).map(str)
    | st.text(max_size=6).map(json.dumps)
    | st.text(max_size=6).map(lambda text: json.dumps(text, ensure_ascii=False))
)
FIELDS = st.sampled_from(
    ["ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args", "other", "na\\u006de"]
)
PLAIN = {
    "ph": st.sampled_from(['"X"', '"X"', '"X"', '"i"', '"s"', '"f"', '"C"', '"M"', '"B"', '"E"']),
    "cat": st.sampled_from(['"cpu_op"', '"kernel"', '"cuda_runtime"', '"gpu_memcpy"', '"cpu_instant_event"']),
    "name": st.sampled_from(['"aten::add"', '"[memory]"', '"thread_name"', '"\\u0061ten::add"']),
    "pid": st.sampled_from(["1", '"1"', "2", '"Spans"']),
    "tid": st.sampled_from(["1", '"stream 7"', "1.5", "1.0"]),
    "ts": st.integers(0, 10**12).map(str) | st.decimals(0, 10**9, places=3).map(str),
    "dur": st.integers(0, 10**4).map(str) | st.decimals(0, 10**4, places=2).map(str),
    "id": st.integers(0, 9).map(str),
}
KEYS = st.sampled_from([key.decode() for key, _ in keys()] + ["note", "Seq", "Is asynchronized op"])
SPACE = st.sampled_from(["", "", " ", "\n  "])


@st.composite
def events(draw: st.DrawFn) -> str:
    """An event as text: mostly plain, now and then with anything."""
    fields = {name: draw(values) for name, values in PLAIN.items()}
    pairs = list(fields.items())
    args = draw(st.lists(st.tuples(KEYS, VALUES), max_size=4))
    pairs.append(("args", "{" + ", ".join(f'"{key}": {value}' for key, value in args) + "}"))
    pairs += draw(st.lists(st.tuples(FIELDS, VALUES), max_size=1))
    if draw(st.booleans()):
        pairs = draw(st.permutations(pairs))
    space = draw(SPACE)
    return "{" + ",".join(f'{space}"{key}":{space}{value}' for key, value in pairs) + space + "}"


def read(text: bytes, chunk_bytes: int) -> object:
    """Tables and repairs of a text, or why there are none."""
    repair_log = RepairLog("t")
    blocks = (text[i : i + 700] for i in range(0, len(text), 700))
    document = Document(blocks, repair_log, chunk_bytes=chunk_bytes)
    collector = Collector(repair_log)
    for batch in document.batches():
        collector.add(batch)
    state = (document.num_events, document.closed, document.cut_at, document.head, document.tail)
    return state, repair_log.repairs(), dict(collector.unknown_categories), collector.tables(0)


def assert_same(text: bytes, chunk_bytes: int = 1 << 20) -> None:
    """The same with the module and without."""
    with pytest.MonkeyPatch.context() as patch:
        found = read(text, chunk_bytes)
        patch.setenv("PYROMETER_NATIVE", "0")
        expected = read(text, chunk_bytes)
    assert found[:-1] == expected[:-1]
    for name, table in expected[-1].items():
        assert_frame_equal(found[-1][name], table)


@given(st.lists(events(), max_size=6), st.sampled_from([1 << 20, 300]))
@example(['{"ph": "M", "name": "thread_name", "args": {"name": "a", "x": 1e999}}'], 300)
@example(['{"ts": 1, "args": {"kind": 5}}', '{"ts": 2, "cat": "kernel", "args": {"grid": [1,2,3]}}'], 1 << 20)
def test_texts_read_the_same(listed: list[str], chunk_bytes: int) -> None:
    assert_same(('{"traceEvents": [' + ", ".join(listed) + '], "x": 1}').encode(), chunk_bytes)


@given(
    st.lists(events(), min_size=1, max_size=4),
    st.lists(st.tuples(st.floats(0, 1), st.sampled_from(b'"\\{}[],:0eE.-n \0\x80\xff\x01')), min_size=1, max_size=3),
    st.sampled_from(["put", "insert", "remove"]),
)  # fmt: skip
def test_damaged_texts_read_the_same(listed: list[str], edits: list[tuple[float, int]], manner: str) -> None:
    body = bytearray(", ".join(listed).encode())
    for share, byte in edits:
        at = min(int(share * len(body)), len(body) - 1)
        body[at : at + (manner != "insert")] = b"" if manner == "remove" else bytes([byte])
    assert_same(b'{"traceEvents": [' + bytes(body) + b"]}")


def small_trace() -> bytes:
    """Some of everything."""
    kinds = [
        r"""{"ph": "X", "cat": "kernel", "name": "k\"\u00e9", "pid": 0, "tid": 7, "ts": 1712195495522374.379, "dur": 1.5,
        "args": {"grid": [1, 2, 3], "blocks per SM": 0.125, "correlation": 3, "x": [true, {"a": null}]}}""",
        """{"args": {"Input Dims": [[2, 3], []], "Call stack": "a;b"}, "cat": "cpu_op", "ts": 5, "dur": 0.5}""",
        """{"ph": "i", "name": "[memory]", "ts": 7, "s": "t", "args": {"Bytes": 10, "Addr": 140000000000000}}""",
        """{"ph": "f", "id": 9, "bp": "e", "ts": 3.25}""",
    ]
    return ('{"traceEvents": [\n' + ",\n".join(kinds * 2) + "\n]}").encode()


@pytest.mark.parametrize("step", [37, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_prefixes_read_the_same(step: int) -> None:
    text = small_trace()
    for length in range(text.index(b"[") + 1, len(text) + 1, step):
        assert_same(text[:length])


def test_every_prefix_is_taken_up_to_its_last_whole_event() -> None:
    body = small_trace().split(b"[\n", 1)[1]
    taken = {len(found) for end in range(len(body)) if (found := scan(body[:end], 0, final=False))}
    assert taken == set(range(1, 9))
    assert scan(body[: body.index(b"\n]")], 0, final=True) is None  # not closed: something was cut off


def test_plain_text_needs_no_msgspec(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a plain chunk was decoded event by event")

    monkeypatch.setattr(Document, "_decode", refuse)
    monkeypatch.setattr(chunks, "nanoseconds", refuse)
    _, repairs, _, tables = read(small_trace(), 1 << 20)
    assert repairs == []
    assert tables["events"]["start_ns"].max() == 1712195495522374379
    assert tables["kernels"]["grid"].to_list() == [[1, 2, 3]] * 2
    assert tables["ops"]["input_dims"].to_list() == ["[[2, 3], []]"] * 2


@pytest.mark.parametrize("start", [-1, 3])
def test_a_start_outside_of_the_text_is_refused(start: int) -> None:
    module = native.compiled()
    assert isinstance(module, ModuleType)
    with pytest.raises(ValueError, match="lies outside"):
        module.scan(b"{}", start, ())


def test_real_traces_read_the_same(real_trace: Path) -> None:
    from pyrometer.trace.reading.load import load

    with pytest.MonkeyPatch.context() as patch:
        found = load(real_trace)
        patch.setenv("PYROMETER_NATIVE", "0")
        expected = load(real_trace)
    assert found.info == expected.info
    for name, table in expected.tables.items():
        assert_frame_equal(found.tables[name], table)


MUTATE = """
import importlib.util, random, sys
spec = importlib.util.spec_from_file_location("pyrometer._native", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
keys = eval(sys.argv[2])
text = sys.stdin.buffer.read()
for end in range(len(text) + 1):
    module.scan(text[:end], 0, keys)
    module.scan(text, end, keys)
rng = random.Random(int(sys.argv[3]))
for _ in range(200_000):
    body = bytearray(text[: rng.randrange(len(text) + 1)])
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(body) + 1)
        body[at : at + rng.randrange(3)] = rng.choice([b"", b'"', b"\\\\", b"\\\\u", b"{", b"[", b"]", b"}", b",", b"9" * 30, b"\\xff", b"-", b"1e"])
    module.scan(bytes(body), 0, keys)
print("sound")
"""


@pytest.mark.exhaustive
def test_no_access_is_out_of_bounds(tmp_path: Path) -> None:
    """Under the sanitizers, with every allocation of its own: every prefix, and many damaged texts."""
    built = tmp_path / "_native.abi3.so"
    command = [sys.executable, str(ROOT / "native" / "build.py"), str(built), "--sanitize"]
    if shutil.which("gcc") is None or subprocess.run(command, check=False).returncode:
        pytest.skip("no compiler with sanitizers")
    library = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    environment = {
        **os.environ,
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
    }
    body = small_trace().split(b"[\n", 1)[1]
    done = subprocess.run(
        [sys.executable, "-c", MUTATE, str(built), repr(keys()), str(random.randrange(2**32))],
        input=body,
        env=environment,
        capture_output=True,
        check=False,
    )
    assert done.stdout.strip() == b"sound", done.stderr.decode()[-3000:]
