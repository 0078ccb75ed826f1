"""Files that pytest-benchmark 5.3.1 and asv 0.6.6 wrote are read; what is written looks like that of pytest-codspeed 5.0.4."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.cli.main import main
from pyrometer.errors import InputError
from pyrometer.guard.exchange.asv import read_asv
from pyrometer.guard.exchange.pytest_benchmark import read_pytest_benchmark
from pyrometer.guard.exchange.reading import read_past
from pyrometer.guard.exchange.writing import to_bencher_metrics, to_codspeed
from pyrometer.guard.gate import Gate

FILES = Path(__file__).parent / "files"
PYTEST_BENCHMARK = (FILES / "pytest_benchmark.json").read_text()
ASV = (FILES / "asv_result.json").read_text()
ASV_BENCHMARKS = (FILES / "asv_benchmarks.json").read_text()

BENCHER = {
    "type": "object",
    "patternProperties": {
        ".+": {
            "type": "object",
            "patternProperties": {
                ".+": {
                    "type": "object",
                    "properties": {
                        name: {"type": "number"} for name in ("value", "lower_value", "upper_value")
                    },
                    "required": ["value"],
                    "additionalProperties": False,
                }
            },
        }
    },
}
"""As Bencher documents its metric format."""


def test_a_file_of_pytest_benchmark():
    point = read_pytest_benchmark(PYTEST_BENCHMARK)
    assert point.tool == "pytest-benchmark 5.3.1"
    assert point.commit == json.loads(PYTEST_BENCHMARK)["commit_info"]["id"]
    assert not point.is_dirty
    assert point.machine["cpu"] == "AMD EPYC"
    assert [one.benchmark for one in point.figures] == [
        "test_bench.py::test_squares[100]", "test_bench.py::test_squares[2000]", "test_bench.py::test_sort"
    ]  # fmt: skip
    sort = point.figures[2]
    assert (sort.metric, sort.kind, sort.num_samples) == ("median_s", "time", 30)
    assert sort.low <= sort.value <= sort.high
    assert point.figures[0].low is None, "three rounds bound no median"


def test_what_pytest_benchmark_does_not_tell_is_not_made_up():
    plain = json.loads(PYTEST_BENCHMARK)
    plain["commit_info"] = {"id": "unknown", "dirty": False}
    for one in plain["benchmarks"]:
        del one["stats"]["data"]
    point = read_pytest_benchmark(json.dumps(plain))
    assert point.commit is None
    assert {(one.low, one.high) for one in point.figures} == {(None, None)}


def test_a_file_of_asv():
    point = read_asv(ASV, ASV_BENCHMARKS)
    assert point.commit == "f4d66160830c16cb2fb83b0f9ea66f6331828d89"
    assert point.machine["cpu"] == "AMD EPYC"
    assert point.taken_at.startswith("2026-")
    assert point.notes == ["b.time_broken: failed or was skipped"]
    found = {(one.benchmark, one.metric): one for one in point.figures}
    assert set(found) == {
        *((f"b.Squares.time_work({n}, '{how}')", "median_s") for n in (100, 2000) for how in ("list", "sum")),
        *((f"b.Squares.track_size({n}, '{how}')", "bytes") for n in (100, 2000) for how in ("list", "sum")),
        ("b.mem_list", "object_bytes"), ("b.peakmem_list", "peak_bytes"), ("b.time_sort", "median_s"),
    }  # fmt: skip
    slowest = found["b.Squares.time_work(2000, 'sum')", "median_s"]
    assert (slowest.value, slowest.low, slowest.high) == (0.0003492417705035864, 0.00020372, 0.00053052)
    assert found["b.Squares.track_size(2000, 'list')", "bytes"].value == 16000
    assert found["b.peakmem_list", "peak_bytes"].kind == "memory"


def test_asv_without_its_descriptions_and_with_parameters_that_were_skipped():
    plain = json.loads(ASV)
    plain["results"]["b.Squares.time_work"][0][1:3] = [float("nan"), None]
    point = read_asv(json.dumps(plain))
    times = [one.benchmark for one in point.figures if one.benchmark.startswith("b.Squares.time")]
    assert times == ["b.Squares.time_work(100, 'list')", "b.Squares.time_work(2000, 'sum')"]
    assert {one.metric for one in point.figures if "track" in one.benchmark} == {"value"}


HOSTILE = [
    "",
    "null",
    "[]",
    "{}",
    "{",
    '{"benchmarks": 3}',
    '{"benchmarks": [{}]}',
    '{"version": 1}',
    "[" * 100_000,
    b"\xff\xfe",
    "NaN",
]


@pytest.mark.parametrize("raw", HOSTILE, ids=lambda raw: repr(raw[:20]))
@pytest.mark.parametrize("read", [read_pytest_benchmark, read_asv])
def test_hostile_files_get_one_line(read, raw):
    with pytest.raises(InputError, match=r"(a|the) file of") as caught:
        read(raw)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_the_other_tools_file_is_refused():
    with pytest.raises(InputError, match="not a file of asv"):
        read_asv(PYTEST_BENCHMARK)
    with pytest.raises(InputError, match="not a file of pytest-benchmark"):
        read_pytest_benchmark(ASV)


def test_files_without_a_result_are_no_history():
    plain = json.loads(ASV) | {"results": {"b.time_broken": [None, []]}}
    with pytest.raises(InputError, match=r"holds no result: b\.time_broken"):
        read_asv(json.dumps(plain))
    with pytest.raises(InputError, match="holds no result"):
        read_pytest_benchmark('{"benchmarks": []}')


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=12,
)


@given(column=JSON, params=JSON, low=JSON)
def test_results_of_any_shape_are_read_or_noted(column, params, low):
    plain = json.loads(ASV)
    plain["results"]["odd"] = [column, params, "v", 0, 0, low]
    point = read_asv(json.dumps(plain))
    assert any(one.benchmark == "b.time_sort" for one in point.figures)


def test_bencher_takes_the_heads_figures_with_their_bounds():
    gates = [
        Gate(benchmark="p.py::f[8]", metric="median_s", kind="time", outcome="regressed", ratio=1.2, ci_low=1.1, ci_high=1.3, base=0.010, head=0.012),
        Gate(benchmark="p.py::f[8]", metric="graph_breaks", kind="counter", outcome="unchanged", base=2, head=2),
        Gate(benchmark="p.py::g", metric="peak_bytes", kind="memory", outcome="undecided", base=1.0),
    ]  # fmt: skip
    metrics = to_bencher_metrics(gates)
    jsonschema.validate(metrics, BENCHER)
    assert set(metrics) == {"p.py::f[8]"}
    assert metrics["p.py::f[8]"]["graph-breaks"] == {"value": 2}
    assert metrics["p.py::f[8]"]["latency"] == pytest.approx(
        {"value": 12e6, "lower_value": 11e6, "upper_value": 13e6}
    )


def test_codspeed_takes_the_heads_times_as_its_own_plugin_writes_them():
    heads = [0.010 + 0.001 * (number % 5) for number in range(12)]
    timed = Gate(benchmark="perf.py::forward[8]", metric="median_s", kind="time", outcome="unchanged", head=0.012, heads=heads)  # fmt: skip
    untold = Gate(benchmark="perf.py::old", metric="median_s", kind="time", outcome="unchanged", head=0.5)
    counted = Gate(
        benchmark="perf.py::forward[8]", metric="operators", kind="counter", outcome="unchanged", head=3
    )
    written = to_codspeed([timed, counted, untold])
    theirs = json.loads((FILES / "codspeed_walltime.json").read_text())
    assert shape_of(written) == shape_of(theirs)
    assert [(one["uri"], one["stats"]["rounds"]) for one in written["benchmarks"]] == [
        ("perf.py::forward[8]", 12),
        ("perf.py::old", 1),
    ]
    stats = written["benchmarks"][0]["stats"]
    assert stats["min_ns"] <= stats["q1_ns"] <= stats["median_ns"] <= stats["q3_ns"] <= stats["max_ns"]
    assert stats["median_ns"] == pytest.approx(12e6, rel=0.05)
    assert stats["total_time"] == pytest.approx(stats["mean_ns"] * 1e-9 * stats["rounds"])
    json.dumps(written, allow_nan=False)


def test_a_folder_of_results_is_read_the_oldest_first(tmp_path):
    machine = tmp_path / "results" / "runner"
    machine.mkdir(parents=True)
    (tmp_path / "results" / "benchmarks.json").write_text(ASV_BENCHMARKS)
    (machine / "machine.json").write_text("{}")
    later = json.loads(ASV) | {"commit_hash": "b" * 40, "date": json.loads(ASV)["date"] + 60_000}
    (machine / "a-env.json").write_text(json.dumps(later))
    (machine / "z-env.json").write_text(ASV)
    assert [point.commit for point in read_past(tmp_path / "results")] == [
        json.loads(ASV)["commit_hash"],
        "b" * 40,
    ]
    assert any(one.metric == "bytes" for one in read_past(machine / "z-env.json")[0].figures)


def test_what_is_no_file_of_a_tool_is_named(tmp_path):
    (tmp_path / "odd.json").write_text('{"benchmarks": 3}')
    with pytest.raises(InputError, match=r"odd\.json: not a file of pytest-benchmark"):
        read_past(tmp_path)
    with pytest.raises(InputError, match=r"missing\.json: cannot be read"):
        read_past(tmp_path / "missing.json")
    (tmp_path / "odd.json").unlink()
    with pytest.raises(InputError, match=r"holds no \*\.json"):
        read_past(tmp_path)


def test_the_verb_keeps_other_tools_results_once_and_history_shows_them(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    store = ["--store", str(tmp_path / "store")]
    file = str(FILES / "pytest_benchmark.json")
    assert main(["guard", "record", "--from", file, *store]) == 0
    assert "recorded 3 figures of pytest-benchmark 5.3.1" in capsys.readouterr().out
    assert main(["guard", "record", "--from", file, *store]) == 0
    assert "kept already" in capsys.readouterr().out
    assert main(["show", "last", *store]) == 0
    assert "test_bench.py::test_sort" in capsys.readouterr().out
    assert main(["guard", "history", "--json", *store]) == 0
    [point] = json.loads(capsys.readouterr().out)["past"]
    assert len(point["figures"]) == 3
    assert main(["guard", "history", *store]) == 0
    told = capsys.readouterr().out
    assert "no commit is recorded yet" in told
    assert "pytest-benchmark" in told


def shape_of(value):
    """Keys and kinds; of a list, those of its first entry."""
    if isinstance(value, dict):
        return {name: shape_of(one) for name, one in value.items()}
    if isinstance(value, list):
        return [shape_of(value[0])]
    return (
        "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__
    )
