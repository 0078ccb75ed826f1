"""Comparing many ranks: time and peak memory against the number of ranks.

    python benchmarks/trace_ranks.py [--ranks 8,16,32,64] [--megabytes 50] [--workers 2] [--hta-python PYTHON] [--quick]
    python benchmarks/trace_ranks.py --ranks 10,100,1000 --megabytes 0.5    # many small ranks

One synthetic rank of a data-parallel job is written once and compressed; each further rank is the same body behind a head
of its own, with another rank and a clock that is ahead, so that 64 ranks of 50 MB take some 300 MB of disk, which are
removed again. Every number of ranks is read in a process of its own: wall time from files to the finished comparison,
processor time of all processes, which a busy machine disturbs less, the peak memory of the merging process, and that of
all processes together, sampled. The clocks must come out as they were set. The job is then opened again, and no file of it
may be read. With an interpreter that has HTA (`traceinsight` on PyPI) the same files are read by HTA, with its comparison of
ranks, as many at a time as it takes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import psutil

from pyrometer.trace.jobs.executor import SerialExecutor
from pyrometer.trace.jobs.kept import Kept
from pyrometer.trace.jobs.merge import MERGED_CALLS, merge_ranks, read_job, summarise
from pyrometer.trace.jobs.summary import RankSummary, first_calls

BASE_NS = 1_700_000_000_000_000_000
AHEAD_NS = 1_234_567
COLLECTIVES = 20
HOST = (100, 100)
OPS = 10


def event(cat: str, name: str, ts: float, dur: float, track: tuple[int, int], **args: Any) -> str:
    """One complete event as text."""
    return json.dumps(
        {
            "ph": "X",
            "cat": cat,
            "name": name,
            "pid": track[0],
            "tid": track[1],
            "ts": ts,
            "dur": dur,
            "args": args,
        }
    )


def step(number: int) -> Iterator[str]:
    """The events of one step: operators with their kernels, and all-reduces between them."""
    clock = 1000.0 + number * 5000
    yield event("user_annotation", f"ProfilerStep#{number}", clock, 4990, HOST)
    for i in range(COLLECTIVES):
        at = clock + 10 + i * 240
        for j in range(OPS):
            key = (number * COLLECTIVES + i) * (OPS + 1) + j + 1
            begin = at + j * 20
            shape = {"External id": key, "Input Dims": [[32, 1024, 1024]]}
            yield event("cpu_op", f"aten::op{j}", begin, 15, HOST, **shape)
            yield event("cuda_runtime", "cudaLaunchKernel", begin + 2, 5, HOST, correlation=key)
            grid = {
                "grid": [128, 1, 1],
                "block": [256, 1, 1],
                "registers per thread": 64,
                "est. achieved occupancy %": 50,
            }
            yield event(
                "kernel", f"kernel_{j}", begin + 10, 14, (0, 7), correlation=key, device=0, stream=7, **grid
            )
        key = (number * COLLECTIVES + i + 1) * (OPS + 1)
        message = {
            "Collective name": "allreduce",
            "dtype": "Float",
            "In msg nelems": 1_000_000,
            "Out msg nelems": 1_000_000,
            "Group size": 64,
            "Process Group Name": "0",
            "Seq": number * COLLECTIVES + i,
        }
        yield event("cpu_op", "record_param_comms", at + 205, 15, HOST, **message)
        yield event("cuda_runtime", "cudaLaunchKernelExC", at + 208, 5, HOST, correlation=key)
        place = {"correlation": key, "device": 0, "stream": 20}
        yield event(
            "kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + 215, 60, (0, 20), **place, **message
        )


def write_ranks(folder: Path, num_ranks: int, megabytes: float) -> float:
    """Write the files; gives the raw megabytes of one."""
    pieces, size, number = [], 0, 0
    while size < megabytes * 1e6:
        text = ",\n".join(step(number))
        pieces.append(text)
        size += len(text)
        number += 1
    body = gzip.compress((",\n".join(pieces) + "\n]}\n").encode(), 1)
    for rank in range(num_ranks):
        head = {
            "schemaVersion": 1,
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": num_ranks},
            "baseTimeNanoseconds": BASE_NS + rank * AHEAD_NS,
        }
        start = json.dumps(head)[:-1] + ', "traceEvents": [\n'
        # Members of a gzip file follow each other: the head is this rank's own, the body is everybody's.
        (folder / f"rank{rank}.json.gz").write_bytes(gzip.compress(start.encode()) + body)
    return size / 1e6


HTA = """
import json, logging, resource, sys, time
from hta.trace_analysis import TraceAnalysis
logging.disable(logging.CRITICAL)
start, failed = time.perf_counter(), []
trace = TraceAnalysis(trace_files={int(rank): path for rank, path in json.loads(sys.argv[1]).items()})
for run in (
    lambda: trace.get_temporal_breakdown(visualize=False),
    lambda: trace.get_comm_comp_overlap(visualize=False),
    lambda: trace.get_potential_stragglers(num_candidates=1),
):
    try:
        run()
    except Exception as error:
        failed.append(f"{type(error).__name__}: {error}")
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(json.dumps({
    "wall_s": time.perf_counter() - start, "cpu_s": sum(one.ru_utime + one.ru_stime for one in used),
    "peak_mb": sum(one.ru_maxrss for one in used) / 1024, "failed": failed,
}))
"""


class Refusing(SerialExecutor):
    """Reads no file: all of them must be known."""

    def map_ranks(self, *asked: Any) -> Any:
        """Never called."""
        raise AssertionError(f"{len(asked[0])} files are read again")


class PeakMemory(threading.Thread):
    """Samples the memory of this process and its children, every 20 ms."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak_bytes = 0
        self.done = threading.Event()

    def run(self) -> None:
        """Until `done` is set."""
        own = psutil.Process()
        while not self.done.wait(0.02):
            family = [own, *own.children(recursive=True)]
            total = sum(_resident_bytes(process) for process in family)
            self.peak_bytes = max(self.peak_bytes, total)


def _resident_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0  # it ended between listing and asking


def _cpu_s(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def measure(folder: Path, num_ranks: int, workers: int) -> dict[str, float]:
    """Read and compare the first ranks, in this process and its workers."""
    memory = PeakMemory()
    memory.start()
    start = time.perf_counter()
    job = read_job([folder / f"rank{rank}.json.gz" for rank in range(num_ranks)], workers=workers)
    taken = time.perf_counter() - start
    cpu_s = _cpu_s(resource.RUSAGE_SELF) + _cpu_s(resource.RUSAGE_CHILDREN)
    memory.done.set()
    memory.join()
    start = time.perf_counter()
    again = read_job([folder / f"rank{rank}.json.gz" for rank in range(num_ranks)], executor=Refusing())
    again_s = time.perf_counter() - start
    assert again == job
    assert not job.failures, job.failures[0]
    assert [clock.offset_ns for clock in job.clocks] == [rank * AHEAD_NS for rank in range(num_ranks)]
    return {
        "ranks": num_ranks,
        "wall_s": taken,
        "again_s": again_s,
        "cpu_s": cpu_s,
        "matched": job.num_matched,
        "merging_peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "all_peak_mb": memory.peak_bytes / 1e6,
    }


def merge_alone(folder: Path, num_ranks: int) -> str:
    """Merging so many ranks, each the summary of one file under another number and with another clock."""
    (one,) = summarise([folder / "rank0.json.gz"], SerialExecutor(), Kept(RankSummary, None))
    assert isinstance(one, RankSummary)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    start = time.process_time()
    job = merge_ranks(
        first_calls(
            msgspec.structs.replace(
                one,
                rank=rank,
                path=f"rank{rank}",
                base_ns=one.base_ns + rank * AHEAD_NS,
                world_size=num_ranks,
            ),
            MERGED_CALLS // num_ranks,
        )
        for rank in range(num_ranks)
    )
    taken = time.process_time() - start
    assert len(job.ranks) == num_ranks
    assert [clock.offset_ns for clock in job.clocks] == [rank * AHEAD_NS for rank in range(num_ranks)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return f"merging {num_ranks:,} ranks, {job.num_matched} collectives of each: CPU {taken:.1f} s, peak {peak:.0f} MB ({before:.0f} MB before)"


def hta(python: str, folder: Path, num_ranks: int) -> str:
    """Seconds per file of HTA, or how it ended."""
    files = {rank: str(folder / f"rank{rank}.json.gz") for rank in range(num_ranks)}
    done = subprocess.run(
        [python, "-c", HTA, json.dumps(files)], capture_output=True, text=True, check=False, timeout=1800
    )
    if done.returncode:
        return (
            f"HTA on {num_ranks} ranks: {(done.stderr.strip().splitlines() or ['it was killed'])[-1][:150]}"
        )
    told = json.loads(done.stdout.strip().splitlines()[-1])
    each = told["wall_s"] / num_ranks
    return f"HTA on {num_ranks} ranks: {told['wall_s']:.2f} s ({each:.3f} s per file), CPU {told['cpu_s']:.2f} s ({told['cpu_s'] / num_ranks:.3f} per file), peak {told['peak_mb']:.0f} MB, failed: {told['failed']}"


def main() -> None:
    """Write the ranks, and measure each number of them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--ranks", default="8,16,32,64")
    parser.add_argument("--megabytes", type=float, default=50)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="2, 4 and 8 ranks of 3 MB")
    parser.add_argument("--hta-python", help="interpreter of an environment with traceinsight")
    parser.add_argument(
        "--merge", help="merge so many copies of one summary, without reading as many files: 1000,10000"
    )
    parser.add_argument("--one", nargs=2, metavar=("FOLDER", "RANKS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one and options.merge:
        print(merge_alone(Path(options.one[0]), int(options.merge)))
        return
    if options.one:
        print(json.dumps(measure(Path(options.one[0]), int(options.one[1]), options.workers)))
        return
    counts = [2, 4, 8] if options.quick else [int(count) for count in options.ranks.split(",")]
    with tempfile.TemporaryDirectory() as name:
        raw = write_ranks(Path(name), max(counts), 3 if options.quick else options.megabytes)
        print(f"{raw:.1f} MB raw per rank, {options.workers} workers")
        print(
            f"{'ranks':>6} {'wall s':>8} {'CPU s':>8} {'CPU/rank':>8} {'MB/s':>7} {'again s':>8} {'matched':>8} {'merge MB':>9} {'all MB':>8}"
        )
        for count in options.merge.split(",") if options.merge else ():
            command = [sys.executable, __file__, "--merge", count, "--one", name, "1"]
            subprocess.run(command, check=True)
        for count in () if options.merge else counts:
            command = [sys.executable, __file__, "--workers", str(options.workers), "--one", name, str(count)]
            kept = {**os.environ, "PYROMETER_CACHE": f"{name}/kept{count}"}
            told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=kept).stdout
            document = json.loads(told.splitlines()[-1])
            print(
                f"{count:>6} {document['wall_s']:>8.2f} {document['cpu_s']:>8.2f} {document['cpu_s'] / count:>8.3f} {raw * count / document['wall_s']:>7.1f} {document['again_s']:>8.2f} "
                f"{document['matched']:>8} {document['merging_peak_mb']:>9.0f} {document['all_peak_mb']:>8.0f}",
                flush=True,
            )
            if options.hta_python:
                print(hta(options.hta_python, Path(name), count), flush=True)


if __name__ == "__main__":
    main()
