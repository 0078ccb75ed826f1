"""Realistic records: what the measuring rooms would have returned for programs of several kinds."""

from __future__ import annotations

import json
import math
import random
import statistics
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from document_fixtures import document_of

from pyrometer.bench.cold import summarise_stage
from pyrometer.bench.comparison.verdict import ReferenceTests, TailRatio, Verdict
from pyrometer.bench.matrix.axes import parse_axes
from pyrometer.bench.matrix.cell import Cell, GraphCounts, OutputError, settings_label
from pyrometer.bench.matrix.recommendation import recommend, rejections
from pyrometer.bench.matrix.record import Matrix
from pyrometer.bench.measurement import Measurement, MemoryUse, PhaseTime, QuantileEstimate
from pyrometer.bench.quality import CaveatCode, caveat
from pyrometer.bench.record import STAGES, ColdStart, ColdStarts, Soak, Window
from pyrometer.bench.stability import byte_drift, share_drift
from pyrometer.evidence.script_outcome import ScriptOutcome
from pyrometer.hardware.record import Conditions, Cpu, Environment, Gpu
from pyrometer.record import from_dict
from pyrometer.report.documents import BenchDocument, CheckDocument
from pyrometer.report.target_documents import MatrixDocument, TargetDocument
from pyrometer.tuning.outcome import Tuning

SEARCHES = ("convolutions",)
"""Recorded searches, by the names of their files."""

HEAD = {
    "tool_version": "0.1.0",
    "run_id": "r7k2m9",
    "created": "2026-11-21T09:30:00Z",
    "command": ["pyrometer", "check", "examples/perception.py:workload"],
}


def make_environment(**changes: Any) -> Environment:
    values: dict[str, Any] = {
        "os": "Linux 6.8.0",
        "python": "3.11.9",
        "pyrometer": "0.1.0",
        "torch": "2.13.0",
        "torch_cuda": None,
        "torch_git": "a1b2c3d",
        "cpu": Cpu(
            model="Intel Xeon Platinum 8481C",
            isa="AVX512",
            physical_cores=1,
            logical_cores=2,
            usable_cpus=2.0,
            numa_nodes=1,
        ),
        "memory_bytes": 8 * 2**30,
        "gpus": [],
        "threads": 2,
        "interop_threads": 1,
        "settings": {"float32_matmul_precision": "highest", "deterministic_algorithms": "off"},
        "fingerprint": "3f9c1a7be402",
    }
    return Environment(**{**values, **changes})


def _quantile(ordered: list[float], q: float) -> float:
    return ordered[min(len(ordered) - 1, math.floor(q * len(ordered)))]


def _estimates(samples: list[float]) -> list[QuantileEstimate]:
    ordered = sorted(samples)
    n = len(ordered)
    estimates = []
    for q in (0.5, 0.9, 0.95, 0.99):
        half = 2.58 * math.sqrt(n * q * (1 - q))
        low, high = math.floor(n * q - half), math.ceil(n * q + half)
        estimates.append(
            QuantileEstimate(
                quantile=q,
                value_s=_quantile(ordered, q),
                low_s=ordered[low] if low >= 0 else None,
                high_s=ordered[high] if high < n else None,
            )
        )
    return estimates


def make_measurement(samples: list[float], warmup: list[float], **changes: Any) -> Measurement:
    ordered = sorted(samples)
    mean = statistics.fmean(samples)
    quantiles = _estimates(samples)
    units = changes.get("units_per_step", 1.0)
    memory = changes.get("memory", make_memory())
    low, high = quantiles[0].low_s or ordered[0], quantiles[0].high_s or ordered[-1]
    values: dict[str, Any] = {
        "name": "perception",
        "clock": "wall",
        "median_s": quantiles[0].value_s,
        "mean_s": mean,
        "min_s": ordered[0],
        "max_s": ordered[-1],
        "stdev_s": statistics.pstdev(samples),
        "iqr_s": _quantile(ordered, 0.75) - _quantile(ordered, 0.25),
        "p50_s": quantiles[0].value_s,
        "p90_s": quantiles[1].value_s,
        "p95_s": quantiles[2].value_s,
        "p99_s": quantiles[3].value_s,
        "ci_low_s": low,
        "ci_high_s": high,
        "confidence": 0.99,
        "quantiles": quantiles,
        "num_samples": len(samples),
        "effective_num_samples": len(samples) / 1.4,
        "autocorrelation_time": 1.4,
        "steps_per_sample": 1,
        "first_call_s": warmup[0],
        "compile_s": None,
        "warmup_steps": len(warmup),
        "warmup_s": warmup,
        "steady": True,
        "jitter": quantiles[3].value_s / mean,
        "throughput": units / mean,
        "throughput_low": units / (mean * 1.008),
        "throughput_high": units / (mean * 0.993),
        "unit": "frames",
        "units_per_step": units,
        "peak_bytes": memory.peak_bytes if memory is not None else None,
        "memory": memory,
        "conditions": Conditions(
            logical_cpus=2, competing_load=0.1, steal_share=0.002, throttled=False, load_average=0.4
        ),
        "samples_s": samples,
        "elapsed_s": sum(samples) + sum(warmup),
    }
    return Measurement(**{**values, **changes})


def make_memory(steps: int = 60, growth: float = 0.0) -> MemoryUse:
    rng = random.Random(5)
    start = 612 * 2**20
    series = [
        int(start + (1 - math.exp(-i / 4)) * 70 * 2**20 + growth * i + rng.random() * 2**20)
        for i in range(steps)
    ]
    return MemoryUse(
        device="cpu",
        source="resident set size of the process",
        peak_bytes=max(series),
        start_bytes=start,
        growth_bytes_per_step=growth,
        steps=list(range(steps)),
        series_bytes=series,
    )


def make_phases(mean: float, **shares: float) -> list[PhaseTime]:
    return [
        PhaseTime(name=name, median_s=mean * share * 0.98, mean_s=mean * share, share=share)
        for name, share in shares.items()
    ]


def noisy(n: int, centre: float, *, seed: int = 1, sigma: float = 0.03, tail: float = 0.06) -> list[float]:
    """Step times as machines make them: a narrow body and a tail to the right."""
    rng = random.Random(seed)
    return [
        centre * math.exp(rng.gauss(0, sigma) * 0.5 + (rng.expovariate(12) if rng.random() < tail else 0))
        for _ in range(n)
    ]


def steady_perception(**changes: Any) -> Measurement:
    warmup = [0.212, 0.061, 0.047, 0.041, 0.0385, 0.036, 0.0345, 0.0336, 0.0331, 0.0328, 0.0326, 0.0324]
    samples = noisy(300, 0.0319)
    missed = sum(sample > 0.0333 for sample in samples) / len(samples)
    values: dict[str, Any] = {
        "phases": make_phases(statistics.fmean(samples), data=0.08, forward=0.88, rest=0.04),
        "deadline_s": 0.0333,
        "deadline_missed_share": missed,
        "cpu_s": 0.0601,
    }
    return make_measurement(samples, warmup, **{**values, **changes})


def bimodal() -> Measurement:
    rng = random.Random(3)
    samples = [
        rng.gauss(0.0011, 0.00003) if rng.random() < 0.6 else rng.gauss(0.0019, 0.00008) for _ in range(900)
    ]
    reservation = caveat(
        CaveatCode("competing_load"),
        "other programs used 1.4 of 2 CPUs while this was measured",
        "run `pyrometer bench robot.py:loop --budget 30s` when the machine is idle",
    )
    return make_measurement(
        samples, [0.02, 0.0021, 0.0019], name="robot loop", unit="ticks", steps_per_sample=4, memory=None, peak_bytes=None,
        conditions=Conditions(logical_cpus=2, competing_load=1.4), warnings=[reservation],
    )  # fmt: skip


def not_steady() -> Measurement:
    samples = [0.005 * (1 + 0.004 * i) * f for i, f in enumerate(noisy(120, 1.0, seed=9))]
    reservation = caveat(
        CaveatCode("not_steady"),
        "step time still rose by 0.4 % per step after 200 steps",
        "look for a growing buffer, or run `pyrometer bench grow.py:work --budget 60s`",
    )
    return make_measurement(
        samples,
        noisy(200, 0.005, seed=8),
        name="grow",
        steady=False,
        warnings=[reservation],
        memory=make_memory(growth=350_000.0),
    )


def interrupted() -> Measurement:
    samples = [41.2, 40.1]
    reservation = caveat(
        CaveatCode("interrupted"),
        "Ctrl-C after 3 steps; what was measured is kept",
        "run it again with `--budget 5m`",
    )
    unbounded = [
        QuantileEstimate(quantile=q, value_s=41.2, low_s=None, high_s=None) for q in (0.5, 0.9, 0.95, 0.99)
    ]
    return make_measurement(
        samples, [62.7], name="huge", complete=False, interrupted=True, steady=False, quantiles=unbounded,
        warnings=[reservation], memory=None,
    )  # fmt: skip


def on_gpu() -> Measurement:
    samples = noisy(2000, 0.00412, seed=12, sigma=0.01, tail=0.01)
    return make_measurement(
        samples, [3.2, 0.41, 0.0052, 0.0043], name="resnet50", config="mode=default, dtype=bfloat16", clock="device events",
        unit="images", units_per_step=64.0, compile_s=38.4, host_s=0.0017, latency_s=0.0046, peak_bytes=6_442_450_944,
        memory=MemoryUse(
            device="cuda:0", source="torch's caching allocator", peak_bytes=6_442_450_944, start_bytes=2_147_483_648,
            growth_bytes_per_step=0.0,
        ),
        conditions=Conditions(
            logical_cpus=16, competing_load=0.3, throttled=False, gpu_clock_ratio=0.99, gpu_temperature_c=54.0,
            other_gpu_processes=0,
        ),
    )  # fmt: skip


def observed_training() -> CheckDocument:
    samples = noisy(180, 0.0874, seed=21)
    phases = make_phases(
        statistics.fmean(samples), data=0.31, h2d=0.02, forward=0.22, backward=0.35, optimizer=0.07, rest=0.03
    )
    measurement = make_measurement(
        samples,
        [0.91, 0.12, 0.095, 0.09],
        name="train.py",
        unit="steps",
        phases=phases,
        memory=make_memory(184),
    )
    script = ScriptOutcome(
        argv=["train.py", "--epochs", "1"], exit_code=0, wall_s=21.4, num_steps=184, steps_from="optimizer steps",
        import_s=2.3, outside_steps_s=5.2, overhead_share=0.004, notes=["no CUDA events: the script used the CPU only"],
    )  # fmt: skip
    return document_of(CheckDocument, target="examples/train.py", measurement=measurement,
        environment=make_environment(), findings=[], script=script, report_path="pyrometer-train.html", **HEAD,
    )  # fmt: skip


def make_verdict(outcome: str) -> Verdict:
    centre, sigma, extra = {
        "faster": (0.704, 0.05, {}),
        "slower": (1.08, 0.04, {"tails": [TailRatio(quantile=0.95, ratio=1.11, ci_low=1.03, ci_high=1.2)]}),
        "same": (1.002, 0.02, {}),
        "undecided": (1.02, 0.3, {"needed_s": 14.2}),
    }[outcome]  # type: ignore[var-annotated]
    rng = random.Random(31)
    blocks = [math.log(centre) + rng.gauss(0, sigma) for _ in range(40)]
    half = math.exp(2.7 * sigma / math.sqrt(40))
    caveats = []
    if outcome == "undecided":
        caveats = [
            caveat(
                CaveatCode("competing_load"),
                "other programs used 1.9 of 2 CPUs",
                "pass `--budget 30s`, or wait until they end",
            )
        ]
    values: dict[str, Any] = {
        "outcome": outcome, "ratio": centre, "ci_low": centre / half, "ci_high": centre * half, "confidence": 0.99,
        "margin": 0.05, "smallest_effect": 0.02, "num_blocks": 40, "elapsed_s": 1.31, "baseline": "eager",
        "candidate": "compiled", "calls_per_batch": 5, "baseline_s": 0.00131, "candidate_s": 0.00131 * centre,
        "log_ratios": blocks, "slot_effect": 0.003, "p_value": 1.2e-7, "seed": 7, "caveats": caveats,
        "reference": ReferenceTests(welch_t=-8.1, welch_p=2e-9, cohen_d=1.81, cohen_size="large", mann_whitney_p=0.003),
    }  # fmt: skip
    return Verdict(**{**values, **extra})


def check_document(measurement: Measurement | None, **changes: Any) -> CheckDocument:
    values: dict[str, Any] = {
        "target": "examples/perception.py:workload",
        "measurement": measurement,
        "environment": make_environment(),
        "findings": [],
        "report_path": None,
        **HEAD,
    }
    return document_of(CheckDocument, **{**values, **changes})


def bench_document(**changes: Any) -> BenchDocument:
    return document_of(
        BenchDocument, **{"target": "model.py:eager", "environment": make_environment(), **HEAD, **changes}
    )


def gpu_environment() -> Environment:
    gpu = Gpu(
        name="NVIDIA H200",
        memory_bytes=150_000_000_000,
        capability="9.0",
        multiprocessors=132,
        driver="580.10",
    )
    return make_environment(gpus=[gpu], torch_cuda="13.0", memory_bytes=128 * 2**30)


def make_cell(ratio: float | None, outcome: str = "faster", off: float = 3e-7, **settings: Any) -> Cell:
    """A cell of a matrix; the reference where there is no ratio."""
    batch = settings["batch_size"]
    coarse = settings.get("dtype") == "bfloat16"
    step_s = 0.004 * batch**0.7 * (ratio or 1.0)
    verdict = None
    if ratio is not None:
        verdict = msgspec.structs.replace(
            make_verdict(outcome), ratio=ratio, ci_low=ratio * 0.95, ci_high=ratio * 1.05
        )
    measurement = make_measurement(
        noisy(150, step_s, seed=batch),
        [9.1 if ratio else 0.02, 0.01],
        compile_s=8.7 if settings["mode"] != "eager" else None,
        units_per_step=float(batch),
        peak_bytes=(420 if settings["mode"] != "eager" else 300) * 2**20,
        memory=None,
    )
    error = OutputError(
        max_abs=off * 4, max_rel=off, cosine=1 - off**2, num_values=80, tolerance=3e-2 if coarse else 1e-4,
        within_tolerance=off <= (3e-2 if coarse else 1e-4),
    )  # fmt: skip
    return Cell(
        label=settings_label(settings), settings=settings, is_reference=ratio is None, measurement=measurement,
        graphs=GraphCounts(num_graphs=int(settings["mode"] != "eager"), num_breaks=0), verdict=verdict,
        error=None if ratio is None else error, elapsed_s=24.0 if ratio else 12.0,
    )  # fmt: skip


def make_matrix() -> Matrix:
    cells = [
        make_cell(None, batch_size=1, dtype="float32", mode="eager"),
        make_cell(0.71, batch_size=1, dtype="float32", mode="default"),
        make_cell(1.18, "slower", 0.04, batch_size=1, dtype="bfloat16", mode="eager"),
        make_cell(0.98, "undecided", 4e-3, batch_size=1, dtype="bfloat16", mode="default"),
        make_cell(None, batch_size=8, dtype="float32", mode="eager"),
        make_cell(0.588, batch_size=8, dtype="float32", mode="default"),
        Cell(
            label="batch 8, bfloat16, eager",
            settings={"batch_size": 8, "dtype": "bfloat16", "mode": "eager"},
            failure="step 1 raised RuntimeError: no kernel for bfloat16",
        ),
        Cell(
            label="batch 8, bfloat16, default",
            settings={"batch_size": 8, "dtype": "bfloat16", "mode": "default"},
            failure="not run: the budget was spent; repeat the command with a larger --budget to go on",
        ),
    ]
    return Matrix(
        name="perception", unit="frames", axes=parse_axes(["batch=1,8 dtype=float32,bfloat16 mode=eager,default"]),
        cells=cells, answer=recommend(cells).sentence, recommendation=recommend(cells), rejected=rejections(cells), num_reused=2, num_missing=1, elapsed_s=151.0,
    )  # fmt: skip


def matrix_document() -> MatrixDocument:
    return MatrixDocument(
        target="vision.py:net", matrix=make_matrix(), environment=make_environment(), **HEAD
    )


def search_document(name: str) -> Tuning:
    """A search as it was recorded, with fewer samples of its baseline."""
    path = Path(__file__).parent / "searches" / f"{name}.json"
    return from_dict(Tuning, json.loads(path.read_text(encoding="utf-8")))


def make_starts() -> ColdStarts:
    def start(scale: float) -> ColdStart:
        return ColdStart(
            python_s=0.1, import_s=2.1 * scale, load_s=0.4, first_call_s=9.0 if scale > 1 else 1.2 * scale,
            total_s=0.5 + 2.1 * scale + (9.0 if scale > 1 else 1.2 * scale), steady_s=0.031,
        )  # fmt: skip

    later = [start(0.9 + 0.01 * i) for i in range(7)]
    stages = [summarise_stage(name, [getattr(cold_start, name) for cold_start in later]) for name in STAGES]
    return ColdStarts(first=start(1.1), later=later, stages=stages)


def make_soak() -> Soak:
    rng = random.Random(2)
    windows = [
        Window(
            start_s=15.0 * i, end_s=15.0 * (i + 1), num_samples=400, p50_s=0.032 * (1 + 0.001 * i) * math.exp(rng.gauss(0, 0.003)),
            p99_s=0.041 * math.exp(rng.gauss(0, 0.05)), memory_bytes=612 * 2**20 + 40_000 * i,
        )
        for i in range(120)
    ]  # fmt: skip
    middles = np.array([window.start_s + 7.5 for window in windows])
    caveats = [
        caveat(
            CaveatCode("drifting"),
            "the steps grew 11.2 % slower in 30 min 0 s",
            "the machine may have changed instead: look at its temperature and load, and run once more",
        )
    ]
    return Soak(
        asked_s=1800.0, elapsed_s=1800.0, num_steps=48_000, steps_per_sample=1, windows=windows,
        latency=share_drift(middles, np.array([window.p50_s for window in windows])),
        tail=share_drift(middles, np.array([window.p99_s for window in windows])),
        memory=byte_drift(middles, np.array([float(window.memory_bytes) for window in windows])),
        memory_source="resident set size of the process", caveats=caveats,
    )  # fmt: skip


def replicated_verdict() -> Verdict:
    estimates = [-0.34, -0.36, -0.352, -0.33, -0.37]
    return msgspec.structs.replace(
        make_verdict("faster"), num_processes=5, num_blocks=200, log_ratios=estimates, reference=None
    )


def all_documents() -> dict[str, TargetDocument | Tuning]:
    return {
        "matrix": matrix_document(),
        **{name: search_document(name) for name in SEARCHES},
        "starts": bench_document(measurement=steady_perception(), cold=make_starts()),
        "soak": bench_document(measurement=steady_perception(), soak=make_soak()),
        "verdict_processes": bench_document(versus="model.py:compiled", verdict=replicated_verdict()),
        "steady": check_document(steady_perception()),
        "bimodal": bench_document(measurement=bimodal(), target="robot.py:loop"),
        "not_steady": bench_document(measurement=not_steady(), target="grow.py:work"),
        "interrupted": bench_document(measurement=interrupted(), target="huge.py:work"),
        "gpu": bench_document(measurement=on_gpu(), target="vision.py:resnet50", environment=gpu_environment()),
        "training": observed_training(),
        "no_step": check_document(None),
        **{f"verdict_{outcome}": bench_document(verdict=make_verdict(outcome)) for outcome in
           ("faster", "slower", "same", "undecided")},
    }  # fmt: skip


@pytest.fixture(scope="session")
def documents() -> dict[str, CheckDocument | BenchDocument]:
    """One document of every kind and condition, by name."""
    return all_documents()


@pytest.fixture(scope="session")
def perception() -> CheckDocument:
    """A steady perception net."""
    return check_document(steady_perception())
