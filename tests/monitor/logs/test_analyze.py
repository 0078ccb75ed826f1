"""An analysis finds what was planted in a log, whatever else stands in the file."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from pyrometer.cli.main import main
from pyrometer.errors import InputError
from pyrometer.monitor.export.json_lines import line_of
from pyrometer.monitor.logs import reading, tally
from pyrometer.monitor.logs.analyze import analyze
from pyrometer.monitor.logs.record import stamp
from pyrometer.monitor.logs.trend import segmentation
from pyrometer.monitor.tick import Event, Source, Tick
from pyrometer.record import to_dict, to_json
from pyrometer.report import html
from pyrometer.report.chinese import chinese

BEGINS_S = 1_780_000_000.0


def lines(count=6000, *, step=1.25, seed=0):
    """One request in 50 ms; v2 after 60 %, slower by a quarter; six shapes, each new one compiles; cuda:1 fails."""
    rng = np.random.default_rng(seed)
    made = []
    for i in range(count):
        new, batch, block = i >= 0.6 * count, [1, 8][i % 2], i * 6 // count
        fields = {"compilations": 1.0} if block != (i - 1) * 6 // count else {"compilations": 0.0}
        latency = 0.004 * batch**0.5 * np.exp(rng.normal(0, 0.1)) * (step if new else 1)
        failed = i % 4 == 1 and i % 100 == 25
        made.append({
            "timestamp": stamp(BEGINS_S + i * 0.05), "event": "error" if failed else "sample", "version": "v2" if new else "v1",
            "device": "cuda:1" if i % 4 == 1 else "cuda:0", "host": "h", "pid": 1, "call": "infer", "shape": f"{batch}x{block}", "batch": batch,
            "latency_s": latency, "error": f"ValueError: bad box {i}" if failed else "", **fields,
        })  # fmt: skip
    return made


def write(path, made, *, between=()):
    raw = [json.dumps(line).encode() for line in made]
    for place, extra in between:
        raw.insert(place, extra)
    path.write_bytes(b"\n".join(raw) + b"\n")
    return path


def test_what_was_planted_is_found(tmp_path):
    found = analyze([write(tmp_path / "calls-1.jsonl", lines())])
    assert (found.lines, found.num_errors, found.left_out) == (6000, 60, {})
    assert found.span_s == 299
    change = next(one for one in found.change_points if one.quantile == "level")
    assert abs(change.at_s - (BEGINS_S + 180)) <= 10
    assert 1.2 < change.ratio < 1.3
    assert ("version", "v2") in {(one.feature, one.value) for one in change.together}
    batch = next(one for one in found.correlations if one.feature == "batch")
    assert batch.explained > 0.7
    assert batch.rank > 0.7
    assert batch.values[0].value == "8"
    assert found.triggers[0].pattern == "first request of a shape in a process"
    assert (found.triggers[0].num_events, found.triggers[0].num_all) == (6, 6)
    assert found.clusters[0].template == "ValueError: bad box <n>"
    assert found.clusters[0].mostly[0].value == "cuda:1"


def test_shapes_that_compile_each_time_are_one_trigger(tmp_path):
    made = lines(8000, step=1.0)
    rng = np.random.default_rng(3)
    for line in made:
        line["compilations"] = 0.0
        if rng.random() < 0.01:
            line |= {"shape": f"1x{rng.choice([65, 97, 131, 167])}", "compilations": 1.0}
    first, *_ = analyze([write(tmp_path / "a.jsonl", made)]).triggers
    assert first.pattern.startswith("shape ")
    assert first.pattern.endswith("and 1 more")
    assert first.num_events == first.num_all
    assert chinese(first.pattern) is not None


def test_an_hour_with_a_slow_version_is_two_changes_also_where_p99_sees_them_later(tmp_path):
    """P99 needs more requests than the level: with bursts its stretches lie apart, and its changes a little aside."""
    rng = np.random.default_rng(2)
    begins_s = np.cumsum(rng.exponential(540, 60))
    made = []
    for second in range(6 * 3600):
        burst = bool(np.any((begins_s <= second) & (second < begins_s + 20)))
        slow = 3 * 3600 <= second < 4 * 3600
        for _ in range(rng.poisson(12 if burst else 0.8)):
            latency = 0.01 * np.exp(rng.normal(0, 0.4)) * (1.35 if slow else 1)
            made.append(
                {
                    "timestamp": stamp(BEGINS_S + second),
                    "event": "sample",
                    "version": "rc" if slow else "v3",
                    "latency_s": latency,
                }
            )
    changes = analyze([write(tmp_path / "a.jsonl", made)]).change_points
    assert [one.together[0].value for one in changes] in (["rc", "v3"], ["v3", "rc"])
    assert [round((one.at_s - BEGINS_S) / 3600, 1) for one in changes] == [3.0, 4.0]


def test_a_log_without_a_change_has_none(tmp_path):
    for seed in range(5):
        assert not analyze([write(tmp_path / "a.jsonl", lines(step=1.0, seed=20 + seed))]).change_points


HOSTILE = {
    "truncated": b'{"timestamp":"2026-05-28T20:2',
    "NUL bytes": b"\0" * 300,
    "foreign": b"INFO:     127.0.0.1 - GET /health",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_is_no_line_is_counted_and_the_rest_stays(tmp_path, kind):
    made = lines(2000)
    clean = analyze([write(tmp_path / "a.jsonl", made)])
    found = analyze(
        [
            write(
                tmp_path / "a.jsonl",
                made,
                between=[(0, HOSTILE[kind]), (1000, HOSTILE[kind]), (2002, HOSTILE[kind])],
            )
        ]
    )
    assert found.left_out == {kind: 3}
    assert found.lines == 2003
    assert found.num_requests == clean.num_requests
    assert found.p50_s == clean.p50_s
    assert any("3 of 2003 lines" in note for note in found.notes)


@pytest.mark.parametrize(
    "odd",
    [b"[1,2]", b'"text"', b"null", b"{}", b'{"timestamp":5}', b'{"timestamp":"x","latency_s":"fast"}', b'{"timestamp":"z"}x}', b'{"timestamp":"q","latency_s":NaN}',
     b'{"timestamp":"y","shape":[1,2],"batch":{"a":1}}', b"\xff\xfe{}", b'{"a":' * 500 + b"1" + b"}" * 500, b'{"latency_s":1e999,"timestamp":"2026-05-28T20:26:40Z"}', b"}{", b"\r"],
)  # fmt: skip
def test_odd_lines_cost_themselves_alone(tmp_path, odd):
    made = lines(400)
    found = analyze([write(tmp_path / "a.jsonl", made, between=[(200, odd)])])
    assert found.num_requests == analyze([write(tmp_path / "b.jsonl", made)]).num_requests


def test_blocks_of_any_size_give_the_same(tmp_path, monkeypatch):
    path = write(tmp_path / "a.jsonl", lines(1500), between=[(700, HOSTILE["truncated"])])
    whole = analyze([path])
    monkeypatch.setattr(reading, "BLOCK_BYTES", 4096)
    assert rounded(to_dict(analyze([path]))) == rounded(to_dict(whole))


def rounded(value):
    """Sums of other blocks differ in their last digits."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list) else value


def test_a_line_without_end_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "BLOCK_BYTES", 4096)
    monkeypatch.setattr(reading, "LONGEST_LINE", 8192)
    found = analyze([write(tmp_path / "a.jsonl", lines(300), between=[(100, b"x" * 100_000)])])
    assert found.left_out == {"overlong": 1}
    assert found.lines == 301


def test_gzip_folders_and_files_of_the_monitor(tmp_path):
    source = Source(model="m", version="v", device="cpu", host="h", pid=7)
    events = [
        Event(at_s=BEGINS_S + i, event="sample", call="infer", latency_s=0.01, shape="1x3", batch=1)
        for i in range(50)
    ]
    raw = b"".join(to_json(line_of(Tick(source=source), event)) + b"\n" for event in events)
    with gzip.open(tmp_path / "calls-7.jsonl.gz", "wb") as file:
        file.write(raw)
    (tmp_path / "calls-7.jsonl.1").write_bytes(raw)
    (tmp_path / "ticks-7.jsonl").write_bytes(b'{"sequence":1}\n')
    found = analyze([tmp_path])
    assert (found.num_requests, found.left_out, len(found.files)) == (100, {}, 2)


def test_cut_gzip_is_told(tmp_path):
    raw = gzip.compress(b"\n".join(json.dumps(line).encode() for line in lines(3000)))
    (tmp_path / "a.jsonl.gz").write_bytes(raw[: len(raw) // 2])
    with pytest.raises(InputError, match="truncated"):
        analyze([tmp_path / "a.jsonl.gz"])


def test_memory_is_bounded_by_stretches_and_cells(tmp_path, monkeypatch):
    monkeypatch.setattr(tally, "MOST_STRETCHES", 64)
    monkeypatch.setattr(tally, "MOST_CELLS", 4)
    found = analyze([write(tmp_path / "a.jsonl", lines())])
    assert len(found.trend) <= 64
    assert any("more than" in note for note in found.notes)
    assert found.num_requests == 5940


def test_slow_lines_are_counted_apart(tmp_path):
    made = lines(1000)
    slow = [{**line, "event": "slow", "latency_s": 5.0} for line in made[::10]]
    found = analyze([write(tmp_path / "a.jsonl", made + slow)])
    assert found.num_slow == 100
    assert found.p99_s < 1


def test_noise_with_a_memory_is_no_series_of_changes():
    false = 0
    for seed in range(40):
        rng = np.random.default_rng(500 + seed)
        noise, series = 0.0, []
        for _ in range(200):
            noise = 0.8 * noise + rng.normal(0, 0.05)
            series.append(noise)
        false += bool(segmentation(np.array(series)))
    assert false <= 4


def test_bad_input_is_one_line(tmp_path, capsys):
    empty, text = tmp_path / "empty.jsonl", tmp_path / "text.jsonl"
    empty.write_bytes(b"")
    text.write_bytes(b"hello\n")
    for path in (tmp_path / "none.jsonl", empty, text, tmp_path):
        if path == tmp_path:
            empty.unlink()
            text.unlink()
        assert main(["monitor", "analyze", str(path)]) == 2
        said = capsys.readouterr().err.strip()
        assert said.startswith("error: ")
        assert "\n" not in said


def test_the_verb_prints_a_screen_json_and_a_page(tmp_path, capsys):
    path = write(tmp_path / "calls-1.jsonl", lines(), between=[(5, HOSTILE["foreign"])])
    assert main(["monitor", "analyze", str(path), "-o", str(tmp_path / "p.html")]) == 0
    printed = capsys.readouterr().out
    assert len(printed.strip().splitlines()) <= 25
    assert max(map(len, printed.splitlines())) <= 80
    assert "Latency over time" in (tmp_path / "p.html").read_text()
    assert main(["monitor", "analyze", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {"lines", "span_s", "trend", "change_points", "correlations", "triggers", "clusters"} <= set(
        document
    )


def test_sentences_of_the_page_are_known_in_chinese(tmp_path):
    document = analyze([write(tmp_path / "a.jsonl", lines(), between=[(5, HOSTILE["foreign"])])])
    from pyrometer.report.chapters.documents import tell

    told = tell(document)
    said = [told.answer.headline, told.answer.bound, *told.answer.cautions]
    for chapter in told.chapters[:-1]:
        said += [text for text in (chapter.title, chapter.how, chapter.change) if text]
    assert [text for text in said if chinese(text) is None] == []
    assert "<script" in html.page(document)
