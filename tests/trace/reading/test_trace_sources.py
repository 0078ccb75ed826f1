"""Containers are told by their bytes, and what is not a trace is refused in one line that helps."""

from __future__ import annotations

import gzip
import importlib.util
import io
import json
import pickle
import sqlite3
import sys
import tarfile
import zipfile
import zlib
from types import ModuleType

import pytest

from pyrometer.errors import InputError
from pyrometer.trace.reading import source
from pyrometer.trace.reading.load import load
from pyrometer.trace.reading.read import read_trace

HAS_ZSTD = (
    sys.version_info >= (3, 14) or importlib.util.find_spec("backports.zstd") is not None
    if importlib.util.find_spec("backports")
    else sys.version_info >= (3, 14)
)


def test_gzip_is_read_whatever_the_file_is_called(text):
    text.path.write_bytes(gzip.compress(text.good()))
    loaded = load(text.path)
    assert loaded.tables["events"].height == 50
    assert loaded.info.raw_bytes == len(text.good())
    assert loaded.info.repaired == []


def test_plain_text_is_read_in_a_file_called_gz(text):
    assert text.load_gzip(text.good()).tables["events"].height == 50


def test_gzip_of_several_members_is_one_text(text):
    good = text.good()
    parts = b"".join(gzip.compress(good[i : i + 999]) for i in range(0, len(good), 999))
    assert text.load_gzip(parts).info.repaired == []
    assert text.load_gzip(parts).tables["events"].height == 50


class Isal(ModuleType):
    """Stands in for the package: zlib, of which nothing can be copied, with errors of its own."""

    class error(Exception):  # noqa: N801, N818 - as the package calls it
        pass

    class decompressobj:  # noqa: N801
        def __init__(self, wbits):
            self._inner = zlib.decompressobj(wbits)

        def decompress(self, packed):
            try:
                return self._inner.decompress(packed)
            except zlib.error as error:
                raise Isal.error(str(error)) from error

        def __getattr__(self, name):
            if name == "copy":
                raise AttributeError(name)
            return getattr(self._inner, name)


def test_isal_unpacks_where_it_is_and_zlib_tells_where_damage_begins(text, monkeypatch):
    sound = gzip.compress(text.good())
    packed = sound[: len(sound) // 2] + b"\xff" * 40 + sound[len(sound) // 2 :]
    found = []
    for isal in (Isal("isal.isal_zlib"), None):
        monkeypatch.setattr(source, "_isal", lambda isal=isal: isal)
        found.append([text.load_gzip(sound), text.load_gzip(packed)])
    for fast, slow in zip(*found, strict=True):
        assert fast.info == slow.info
        assert fast.tables["events"].equals(slow.tables["events"])
    assert "corrupt" in {repair.code for repair in found[0][1].info.repaired}


def test_zeros_after_gzip_are_padding_and_other_bytes_are_told(text):
    packed = gzip.compress(text.good())
    assert text.load_gzip(packed + b"\0" * 512).info.repaired == []
    assert [r.code for r in text.load_gzip(packed + b"more").info.repaired] == ["garbage_at_end"]


def test_byte_order_mark_and_leading_space_are_skipped(text):
    assert text.load(b"\xef\xbb\xbf\n\n " + text.good()).tables["events"].height == 50


@pytest.mark.skipif(not HAS_ZSTD, reason="no zstd in this Python; pip install backports.zstd")
def test_zstd_is_read_and_its_truncation_told(text):
    zstd = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    good = text.good(count=5000)
    packed = zstd.compress(good)
    assert text.load(packed).info.repaired == []
    assert text.load(packed).tables["events"].height == 5000
    cut = text.load(packed[: len(packed) // 2])
    assert [r.code for r in cut.info.repaired] == ["truncated"]


def test_zstd_without_a_reader_names_the_extra(text, monkeypatch):
    for name in ("compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=r"zstd.*pip install pyrometer\[zstd\]"):
        text.load(b"\x28\xb5\x2f\xfd" + b"rest")


def sqlite_bytes(path) -> bytes:
    connection = sqlite3.connect(path)
    connection.execute("create table t (a)")
    connection.commit()
    connection.close()
    return path.read_bytes()


def zip_bytes() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("trace.json", "{}")
    return buffer.getvalue()


def tar_bytes(path) -> bytes:
    path.write_text("{}")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(path, "trace.json")
    return buffer.getvalue()


LOG = b'V1121 13:51:07.123000 1234 torch/_logging/structured.py:28] {"str": ["/a.py", 0]}\n'


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "an empty file"),
        (b"\n \n", "an empty file"),
        (pickle.dumps({"segments": []}), "memory snapshot; open that with pyrometer memory"),
        (LOG, "TORCH_TRACE writes it; open that with pyrometer compile"),
        (b"hello", "text that is not JSON"),
        (b"<!DOCTYPE html><html>", "a web page"),
        (b"\xff\xfe{\x00", "UTF-16"),
        (b"\x0a\x04\x00\x00\x12", "binary, perhaps a Perfetto trace"),
        (b"\x0a\x8a\x01\x9a\x01\x12abc", "binary, perhaps a Perfetto trace"),
        (b"\x01\x00\x02", "binary"),
        ('{"traceEvents": []}'.encode("utf-16-le"), "UTF-16 text; save it as UTF-8"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
        (b'{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},\n"traceEvents":[]}', "JAX or XLA"),
        (b'"Kind","Agent_Id","Queue_Id","Kernel_Name"\n', "a table of rocprof"),
        (b'{"rocprofiler-sdk-tool": [{"metadata": {}}]}', "results of rocprofv3"),
        (b"QDSTRM\x00\x01", "a report of Nsight Systems"),
        (b'{"schema": "1.0.2-chakra.0.0.4", "nodes": []}', "an execution trace"),
        (b'{"$schema": "https://www.speedscope.app/file-format-schema.json"}', "a speedscope profile"),
        (b'{"a": 1}', "JSON without a list traceEvents"),
        (b"[1, 2, 3]", "a JSON list that holds no events"),
        (b'[{"a": 1}, {"b": 2}]', "a JSON list that holds no events"),
        (b"[[1.0, [2, 3]]]", "a JSON list that holds no events"),
        (b'{"a": 1', "before its list of events begins"),
    ],
)
def test_what_is_not_a_trace_is_refused_in_one_line(text, data, said):
    with pytest.raises(InputError) as refused:
        text.load(data)
    assert said in str(refused.value)
    assert str(refused.value).startswith(str(text.path))
    assert "\n" not in str(refused.value)


def test_containers_of_traces_are_refused(text, tmp_path):
    for data, said in (
        (zip_bytes(), "a zip archive; unpack it"),
        (tar_bytes(tmp_path / "x"), "a tar archive; unpack it"),
        (sqlite_bytes(tmp_path / "db"), "an SQLite database"),
        (gzip.compress(pickle.dumps([])), "a pickle"),
    ):
        with pytest.raises(InputError, match=said):
            text.load(data)


def test_trace_without_events_is_empty_and_sound(text):
    for data in (
        b"[]",
        b'{"traceEvents": []}',
        b'{"traceEvents": null, "a": 1}',
        b'{"traceEvents":[],"b":[]}',
    ):
        loaded = text.load(data)
        assert loaded.tables["events"].height == 0
        assert loaded.info.repaired == []


def test_bare_list_is_a_trace(text):
    loaded = text.load(json.dumps(json.loads(text.good())["traceEvents"]).encode())
    assert loaded.tables["events"].height == 50
    assert loaded.info.rank_from == "order"


def test_missing_files_folders_and_patterns_are_refused(tmp_path):
    for path, said in (
        (tmp_path / "none.json", "no such file"),
        (tmp_path, "no trace in this folder"),
        (tmp_path / "rank*.json", "no file matches this pattern"),
        ([], "no trace files given"),
    ):
        with pytest.raises(InputError, match=said):
            read_trace(path)


def test_a_link_that_leads_to_itself_is_told(tmp_path):
    path = tmp_path / "trace.json"
    path.symlink_to(path)
    for given in (path, str(tmp_path / "*.json")):
        with pytest.raises(InputError, match="leads to itself"):
            read_trace(given)


@pytest.mark.parametrize(("name", "said"), [("run.nsys-rep", "Nsight"), ("host.xplane.pb", "XProf")])
def test_reports_of_other_profilers_are_told_by_their_names(tmp_path, name, said):
    path = tmp_path / name
    path.write_bytes(b"\x12\x08rest")
    with pytest.raises(InputError, match=said):
        read_trace(path)


def test_folders_and_patterns_lead_to_their_files(text, tmp_path):
    good = text.good().replace(b'"rank": 2, ', b"")
    for name in ("rank0.json", "rank1.json", "config.json", "notes.txt"):
        (tmp_path / name).write_bytes(good)
    assert [rank.rank for rank in read_trace(tmp_path).ranks] == [0, 1]
    assert [rank.rank for rank in read_trace(str(tmp_path / "rank*.json")).ranks] == [0, 1]
    assert [
        rank.rank for rank in read_trace([tmp_path / "rank1.json", str(tmp_path / "rank*.json")]).ranks
    ] == [1, 0]
    for i in range(2):
        (tmp_path / "deep" / f"rank-{i}").mkdir(parents=True)
        (tmp_path / "deep" / f"rank-{i}" / "trace.json").write_bytes(good)
    assert [rank.rank for rank in read_trace(tmp_path / "deep").ranks] == [0, 1]


def test_a_name_with_brackets_is_a_name_first(text, tmp_path):
    path = tmp_path / "trace[1].json"
    path.write_bytes(text.good())
    assert read_trace(path).rank().info.num_events == 50
