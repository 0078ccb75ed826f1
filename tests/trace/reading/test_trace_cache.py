"""The cache: a second open is the same trace, and nothing about the cache can fail a read."""

from __future__ import annotations

import gc
import os

import pytest
from polars.testing import assert_frame_equal

from pyrometer.trace import schema
from pyrometer.trace.reading import cache as cache_module
from pyrometer.trace.reading import read as read_module
from pyrometer.trace.reading.cache import SUFFIX, Cache, content_key, default_folder
from pyrometer.trace.reading.read import read_trace


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def path(text, monkeypatch):
    monkeypatch.setattr(read_module, "SMALLEST_RAW", 0)
    text.path.write_bytes(text.good())
    return text.path


@pytest.fixture
def loads(monkeypatch):
    """How often files are really read."""
    seen = []
    original = read_module.load_all

    def counted(paths, **options):
        seen.extend(paths)
        return original(paths, **options)

    monkeypatch.setattr(read_module, "load_all", counted)
    return seen


def entries(folder):
    return sorted(folder.glob(f"*{SUFFIX}"))


def same(first, second):
    for name, table in first.tables.items():
        assert_frame_equal(table, second.tables[name])


def test_second_open_comes_from_the_cache(path, folder, loads):
    first = read_trace(path, cache=folder).rank()
    second = read_trace(path, cache=folder).rank()
    assert len(loads) == 1
    assert len(entries(folder)) == 1
    same(first, second)
    assert first.info == second.info


def test_content_decides_and_not_the_name(path, folder, loads, tmp_path):
    read_trace(path, cache=folder)
    other = tmp_path / "rank9_other.json"
    other.write_bytes(path.read_bytes())
    info = read_trace(other, cache=folder).rank().info
    assert len(loads) == 1
    assert info.path == str(other)
    path.write_bytes(path.read_bytes().replace(b"op7", b"op8"))
    read_trace(path, cache=folder)
    assert len(loads) == 2


def test_rank_of_a_cached_file_is_found_anew(text, folder, loads, path, tmp_path):
    path.write_bytes(text.good().replace(b'"rank": 2, ', b""))
    read_trace(path, cache=folder)
    other = tmp_path / "rank9.json"
    other.write_bytes(path.read_bytes())
    one = read_trace(other, cache=folder).rank()
    assert len(loads) == 1
    assert (one.rank, one.info.rank_from) == (9, "file name")
    assert one.tables["events"]["rank"].unique().to_list() == [9]


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "other"])
def test_broken_entry_is_replaced_and_noted(path, folder, loads, damage):
    first = read_trace(path, cache=folder).rank()
    (entry,) = entries(folder)
    data = bytearray(entry.read_bytes())
    data[len(data) // 2] ^= 1
    broken = {"cut": data[: len(data) // 2], "flipped": data, "empty": b"", "other": b"hello" * 50}[damage]
    entry.write_bytes(broken)
    second = read_trace(path, cache=folder).rank()
    same(first, second)
    assert "replaced" in second.info.notes[0]
    assert len(loads) == 2
    assert read_trace(path, cache=folder).rank().info.notes == []
    assert len(loads) == 2


def test_folder_that_cannot_be_written_is_done_without_and_noted(path, tmp_path, loads):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    info = read_trace(path, cache=blocked / "cache").rank().info
    assert info.num_events == 50
    assert any("cannot be" in note and "cache" in note for note in info.notes)


def test_other_columns_make_another_key(path, folder, loads, monkeypatch):
    before = content_key(path)
    monkeypatch.setattr(cache_module, "_READER", b"another reader")
    assert content_key(path) != before


def test_entry_of_other_columns_is_not_used(path, folder, loads, monkeypatch):
    read_trace(path, cache=folder)
    tables = {**schema.TABLES, "extras": {**schema.EXTRAS, "more": schema.EXTRAS["args"]}}
    monkeypatch.setattr(schema, "TABLES", tables)
    loaded, note = Cache(folder).get(content_key(path))
    assert loaded is None
    assert "other tables" in note


def test_oldest_entries_make_room(text, folder, tmp_path, path):
    for i in range(4):
        (tmp_path / f"{i}.json").write_bytes(text.good().replace(b"op7", b"op%d" % i))
    loaded = read_module.load_all([tmp_path / f"{i}.json" for i in range(4)])
    store = Cache(folder)
    store.put("a", loaded[0])
    size = entries(folder)[0].stat().st_size
    store = Cache(folder, limit_bytes=int(size * 2.5))
    for age, key in ((300, "a"), (200, "b"), (100, "c")):
        store.put(key, loaded[1])
        os.utime(folder / f"{key}{SUFFIX}", (1e9 - age, 1e9 - age))
    assert {entry.stem for entry in entries(folder)} == {"b", "c"}
    assert store.get("b")[0] is not None  # used: now younger than c
    store.put("d", loaded[3])
    assert {entry.stem for entry in entries(folder)} == {"b", "d"}
    assert [p for p in folder.iterdir() if p.suffix == ".tmp"] == []


def test_small_files_are_not_cached(text, folder):
    text.path.write_bytes(text.good())
    read_trace(text.path, cache=folder)
    assert not folder.exists()


def test_damage_survives_the_cache_under_the_present_name(text, path, folder, loads, tmp_path):
    path.write_bytes(text.good().replace(b"5.5", b"NaN", 1))
    first = read_trace(path, cache=folder).rank().info
    other = tmp_path / "other.json"
    other.write_bytes(path.read_bytes())
    second = read_trace(other, cache=folder).rank().info
    assert len(loads) == 1
    assert [r.code for r in second.repaired] == [r.code for r in first.repaired]
    assert second.repaired[0].message.startswith("other.json: ")


def test_where_entries_are_kept(tmp_path):
    home = default_folder({"XDG_CACHE_HOME": str(tmp_path)})
    assert home == tmp_path / "pyrometer" / "traces"
    assert default_folder({"PYROMETER_CACHE": str(tmp_path), "XDG_CACHE_HOME": "/x"}) == tmp_path / "traces"
    assert default_folder({"PYROMETER_CACHE": "off"}) is None


def test_large_files_are_hashed_in_segments(tmp_path, monkeypatch):
    monkeypatch.setattr(cache_module, "SEGMENT", 1000)
    path = tmp_path / "x"
    keys = set()
    for data in (b"a" * 5000, b"a" * 4999 + b"b", b"b" + b"a" * 4999, b"a" * 5001):
        path.write_bytes(data)
        keys.add(content_key(path))
    assert len(keys) == 4


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("sound", [True, False])
def test_garbage_collection_is_as_before(text, enabled, sound):
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        if sound:
            text.load(text.good())
        else:
            with pytest.raises(Exception, match="not a trace"):
                text.load(b"[1]")
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()
