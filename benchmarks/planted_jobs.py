"""Faults planted into random jobs: how many are found, and how many are told of jobs that have none.

    python benchmarks/planted_jobs.py [--jobs 200] [--clean 200] [--seed 1] [--show]

Each job is simulated as a training runs: hosts whose clocks differ by milliseconds and drift, loaders and kernels that
vary, now and then a hiccup of any rank, buckets reduced beside the backward pass, tensor-parallel groups whose ranks meet
in every layer, pipelines of 1F1B. Into each of `--jobs` one fault is planted, in turn:

* straggler: one rank computes, loads or launches more slowly, by a twentieth of the step or more;
* clock: the clock of one host is off by 10 ms to 3 h;
* link: what one data-parallel group reduces over moves at 15 to 40 % of the bandwidth of the other groups;
* bubble: a pipeline has few micro-batches, or one stage has a third more work or more.

A straggler is found where a finding names the rank, a slow link where one names a rank of the group, a bubble where one is told of the
pipeline, a clock where its offset is told to 0.1 ms, and from a minute on in a line of warning. What is told of a job and
was not planted is a false alarm, in clean jobs and beside other faults.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyrometer.evidence.evidence import Evidence
from pyrometer.rules.explain import explain
from pyrometer.trace.jobs.executor import SerialExecutor
from pyrometer.trace.jobs.job import Job
from pyrometer.trace.jobs.merge import merge_ranks
from pyrometer.trace.jobs.reduce import reduce_rank

FAULTS = ("straggler", "clock", "link", "bubble")
KINDS = {
    "straggler": ("dp", "mesh"),
    "clock": ("dp", "mesh", "pipeline"),
    "link": ("mesh",),
    "bubble": ("pipeline",),
}
CODES = {"PYR607": "straggler", "PYR608": "straggler", "PYR610": "link", "PYR609": "bubble"}
BASE_NS = 1_760_000_000_000_000_000
EXACT_NS = 100_000
TOLD_NS = 60_000_000_000
COMPUTE, COMM, SEND, RECV = 7, 20, 21, 22


@dataclass
class Plan:
    """What a job is, and what is wrong with it; times in microseconds."""

    kind: str
    fault: str | None
    dp: int = 1
    tp: int = 1
    stages: int = 1
    microbatches: int = 1
    steps: int = 8
    layers: int = 4
    layer_us: float = 400
    bucket_bytes: int = 64 << 20
    layers_per_bucket: int = 2
    bandwidth: float = 100e9
    load_us: float = 300
    noise: float = 0.03
    waits_at_end: bool = True
    slow_rank: int = -1
    slow_how: str = ""
    slow_us: float = 0
    slow_group: int = -1
    slow_link: float = 1
    heavy_stage: int = -1
    heavier: float = 1
    clock_us: dict[int, float] = field(default_factory=dict)
    drift: dict[int, float] = field(default_factory=dict)
    hosts: dict[int, str] = field(default_factory=dict)

    @property
    def world(self) -> int:
        """Number of ranks."""
        return self.dp * self.tp * self.stages


def draw_plan(chance: random.Random, fault: str | None) -> Plan:
    """A random job."""
    kind = chance.choice(KINDS[fault] if fault else ("dp", "mesh", "pipeline"))
    plan = Plan(kind, fault, steps=chance.randint(6, 12), layers=chance.randint(3, 8))
    plan.layer_us, plan.noise = chance.uniform(200, 900), chance.uniform(0.01, 0.05)
    plan.bandwidth, plan.load_us = chance.uniform(20e9, 250e9), chance.uniform(50, 800)
    plan.bucket_bytes = int(chance.uniform(16 << 20, 150 << 20))
    plan.layers_per_bucket, plan.waits_at_end = chance.randint(1, 3), chance.random() < 0.6
    if kind == "dp":
        plan.dp = chance.randint(2, 12)
    elif kind == "mesh":
        plan.tp, plan.dp = chance.choice((2, 4)), chance.choice((2, 3, 4))
        plan.bucket_bytes = max(plan.bucket_bytes, 32 << 20)
    else:
        plan.stages = chance.randint(2, 5)
        plan.microbatches = math.ceil((plan.stages - 1) * chance.uniform(10, 14))
        plan.steps = min(plan.steps, 6)
    per_host = chance.choice((2, 4, 8))
    for rank in range(plan.world):
        plan.hosts[rank] = f"node{rank // per_host}"
    for host in set(plan.hosts.values()):
        offset, drift = chance.gauss(0, 2000), chance.gauss(0, 1e-6)
        for rank, name in plan.hosts.items():
            if name == host:
                plan.clock_us[rank], plan.drift[rank] = offset, drift
    _plant(plan, chance)
    return plan


def _plant(plan: Plan, chance: random.Random) -> None:
    buckets = -(-plan.layers // plan.layers_per_bucket)
    moves_us = 2e6 * plan.bucket_bytes / plan.bandwidth * buckets
    step_us = plan.load_us + 3 * plan.layers * plan.layer_us + moves_us
    if plan.fault == "straggler":
        plan.slow_rank = chance.randrange(plan.world)
        plan.slow_how = chance.choice(("compute", "load", "host"))
        plan.slow_us = step_us * chance.uniform(0.08, 0.6)
        # A host that never waits for its device runs so far ahead that its own delays cost nothing.
        plan.waits_at_end |= plan.slow_how != "compute"
        if plan.slow_how == "host":  # the first layer runs meanwhile, and hides as much
            plan.slow_us += 1.5 * plan.layer_us
    elif plan.fault == "clock":
        host = plan.hosts[chance.randrange(plan.world)]
        offset = math.copysign(
            math.exp(chance.uniform(math.log(1e4), math.log(1.08e10))), chance.random() - 0.5
        )
        for rank, name in plan.hosts.items():
            plan.clock_us[rank] += offset if name == host else 0
    elif plan.fault == "link":
        plan.slow_group, plan.slow_link = chance.randrange(plan.tp), chance.uniform(0.15, 0.4)
    elif plan.fault == "bubble":
        if chance.random() < 0.5:
            plan.microbatches = chance.randint(plan.stages, 2 * plan.stages)
        else:
            plan.heavy_stage, plan.heavier = chance.randrange(plan.stages), chance.uniform(1.35, 2)


class Rank:
    """One rank while its job runs: when its host and its streams are free, in true time, and its events on its own clock."""

    def __init__(self, rank: int, plan: Plan) -> None:
        self.rank, self.plan = rank, plan
        self.host, self.free = 1000.0, {COMPUTE: 0.0, COMM: 0.0, SEND: 0.0, RECV: 0.0}
        self.events: list[dict[str, Any]] = []
        self.correlation = 0

    def add(self, cat: str, name: str, at: float, dur: float, track: int = 0, **args: Any) -> None:
        """An event, as Kineto writes it."""
        clock = at * (1 + self.plan.drift[self.rank]) + self.plan.clock_us[self.rank]
        pid, tid = (0, track) if track else (500 + self.rank, 500 + self.rank)
        told = {"stream": track, "device": 0, **args} if track else args
        self.events.append(
            {
                "ph": "X",
                "cat": cat,
                "name": name,
                "pid": pid,
                "tid": tid,
                "ts": round(clock, 3),
                "dur": round(dur, 3),
                "args": told,
            }
        )

    def launch(self, op: str, **args: Any) -> int:
        """An operator with a launching call; gives what links it with its kernel."""
        self.correlation += 1
        self.add("cpu_op", op, self.host, 12, **args)
        self.add("cuda_runtime", "cudaLaunchKernel", self.host + 4, 5, correlation=self.correlation)
        self.host += 14
        return self.correlation

    def compute(self, op: str, dur: float, after: float = 0) -> float:
        """A kernel of the compute stream; gives its end."""
        key = self.launch(op)
        begins = max(self.free[COMPUTE], self.host, after)
        self.add("kernel", f"{op[6:]}_kernel", begins, dur, COMPUTE, correlation=key)
        self.free[COMPUTE] = begins + dur
        return self.free[COMPUTE]

    def write(self, folder: Path) -> Path:
        """The file."""
        head = {
            "schemaVersion": 1,
            "baseTimeNanoseconds": BASE_NS,
            "hostname": self.plan.hosts[self.rank],
            "distributedInfo": {"backend": "nccl", "rank": self.rank, "world_size": self.plan.world},
        }
        path = folder / f"rank{self.rank}.json"
        path.write_text(json.dumps({**head, "traceEvents": self.events}), encoding="utf-8")
        return path


class Collectives:
    """All-reduces of the groups of a job."""

    def __init__(self, plan: Plan, chance: random.Random) -> None:
        self.plan, self.chance = plan, chance
        self.numbers: Counter[str] = Counter()

    def reduce(
        self,
        members: Sequence[Rank],
        group: str,
        size: int,
        ready: Sequence[float],
        *,
        stream: int,
        share: float = 1.0,
    ) -> None:
        """Begins on each rank when it is ready, and ends for all together, once data has moved after the last came."""
        self.numbers[group] += 1
        args = {
            "Collective name": "allreduce",
            "dtype": "BFloat16",
            "In msg nelems": size // 2,
            "Out msg nelems": size // 2,
            "Group size": len(members),
            "Process Group Name": group,
            "Process Group Ranks": str([one.rank for one in members]),
            "Seq": self.numbers[group],
        }
        starts = []
        keys = []
        for one, at in zip(members, ready, strict=True):
            keys.append(one.launch("record_param_comms", **args))
            starts.append(max(one.free[stream], one.host, at))
        n = len(members)
        moves = 15 + size / (self.plan.bandwidth * share) * 2 * (n - 1) / n * 1e6
        ends = max(starts) + moves * self.chance.gauss(1, 0.01)
        for one, key, at in zip(members, keys, starts, strict=True):
            left = max(ends + self.chance.uniform(0, 3), at + 1)
            one.add(
                "kernel",
                "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
                at,
                left - at,
                stream,
                correlation=key,
                **args,
            )
            one.free[stream] = left


def varied(chance: random.Random, value: float, noise: float) -> float:
    """A time as it comes out."""
    return value * math.exp(chance.gauss(0, noise))


def run_data_parallel(plan: Plan, chance: random.Random) -> list[Rank]:
    """Data parallel, with tensor-parallel groups where there are any."""
    ranks = [Rank(rank, plan) for rank in range(plan.world)]
    every = Collectives(plan, chance)
    tensor = [ranks[first : first + plan.tp] for first in range(0, plan.world, plan.tp)]
    data = [ranks[first :: plan.tp] for first in range(plan.tp)]
    for step in range(plan.steps):
        begins = [one.host for one in ranks]
        hiccup = chance.randrange(plan.world) if chance.random() < 0.15 else -1
        for one in ranks:
            extra = plan.slow_us if (one.rank, plan.slow_how) == (plan.slow_rank, "load") else 0
            took = varied(chance, plan.load_us, 0.15) + extra
            one.add(
                "user_annotation",
                "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
                one.host,
                took,
            )
            one.host += took
        for layer in range(2 * plan.layers):
            backward = layer >= plan.layers
            for one in ranks:
                is_slow = one.rank == plan.slow_rank
                if is_slow and plan.slow_how == "host" and layer == 1:
                    one.add("cpu_op", "aten::nonzero", one.host, plan.slow_us)
                    one.host += plan.slow_us
                dur = varied(chance, plan.layer_us * (2 if backward else 1), plan.noise)
                dur += plan.slow_us / (2 * plan.layers) if is_slow and plan.slow_how == "compute" else 0
                dur += plan.layer_us * chance.uniform(0.5, 2) if one.rank == hiccup and layer == 2 else 0
                one.compute("aten::mm" if backward else "aten::addmm", dur)
            for number, group in enumerate(tensor if plan.tp > 1 else []):
                every.reduce(
                    group, f"tp{number}", 8 << 20, [one.free[COMPUTE] for one in group], stream=COMPUTE
                )
            if backward and (layer + 1) % plan.layers_per_bucket == 0:
                reduce_gradients(every, data, plan)
        reduce_gradients(every, data, plan)
        for one in ranks:
            one.compute("aten::_fused_adamw_", varied(chance, plan.layer_us, plan.noise), one.free[COMM])
            if plan.waits_at_end or step == plan.steps - 1:
                one.add(
                    "cuda_runtime",
                    "cudaStreamSynchronize",
                    one.host,
                    max(one.free[COMPUTE] - one.host, 1) + 2,
                )
                one.host = max(one.free[COMPUTE], one.host) + 5
            one.add("user_annotation", f"ProfilerStep#{step}", begins[one.rank], one.host - begins[one.rank])
            one.host += 5
    return ranks


def reduce_gradients(every: Collectives, data: Sequence[Sequence[Rank]], plan: Plan) -> None:
    """A bucket on every data-parallel group."""
    for number, group in enumerate(data):
        if len(group) > 1:
            share = plan.slow_link if number == plan.slow_group else 1.0
            ready = [one.free[COMPUTE] for one in group]
            every.reduce(group, f"dp{number}", plan.bucket_bytes, ready, stream=COMM, share=share)


def run_pipeline(plan: Plan, chance: random.Random) -> list[Rank]:
    """1F1B: each stage runs ahead by as many forwards as stages follow, then a backward after each forward."""
    ranks = [Rank(rank, plan) for rank in range(plan.stages)]
    every = Collectives(plan, chance)
    for step in range(plan.steps):
        begins = [one.host for one in ranks]
        orders = [_one_f_one_b(plan.stages, stage, plan.microbatches) for stage in range(plan.stages)]
        arrived: dict[tuple[str, int, int], float] = {}
        places = [0] * plan.stages
        while any(place < len(order) for place, order in zip(places, orders, strict=True)):
            for stage, one in enumerate(ranks):
                while places[stage] < len(orders[stage]):
                    way, batch = orders[stage][places[stage]]
                    source = stage - 1 if way == "F" else stage + 1
                    if 0 <= source < plan.stages and (way, batch, stage) not in arrived:
                        break
                    _run_batch(one, way, batch, arrived=arrived, plan=plan, chance=chance)
                    places[stage] += 1
        every.reduce(ranks, "world", 1 << 20, [one.free[COMPUTE] for one in ranks], stream=COMM)
        for one in ranks:
            one.compute("aten::_fused_adamw_", varied(chance, plan.layer_us, plan.noise), one.free[COMM])
            one.add(
                "cuda_runtime", "cudaStreamSynchronize", one.host, max(one.free[COMPUTE] - one.host, 1) + 2
            )
            one.host = max(one.free[COMPUTE], one.host) + 5
            one.add("user_annotation", f"ProfilerStep#{step}", begins[one.rank], one.host - begins[one.rank])
            one.host += 5
    return ranks


def _one_f_one_b(stages: int, stage: int, batches: int) -> list[tuple[str, int]]:
    ahead = min(stages - stage - 1, batches)
    order = [("F", batch) for batch in range(ahead)]
    for batch in range(batches - ahead):
        order += [("F", ahead + batch), ("B", batch)]
    return order + [("B", batch) for batch in range(batches - ahead, batches)]


def _run_batch(
    one: Rank,
    way: str,
    batch: int,
    *,
    arrived: dict[tuple[str, int, int], float],
    plan: Plan,
    chance: random.Random,
) -> None:
    """Receive, compute and send one micro-batch."""
    stage = one.rank
    source, target = (stage - 1, stage + 1) if way == "F" else (stage + 1, stage - 1)
    size = 4 << 20
    moves = 8 + size / plan.bandwidth * 1e6
    after = arrived.get((way, batch, stage), 0.0)
    if 0 <= source < plan.stages:
        key = one.launch("c10d::recv_")
        begins = max(one.free[RECV], min(one.host, after - moves))
        one.add(
            "kernel",
            "ncclDevKernel_SendRecv",
            begins,
            max(after - begins, 1),
            RECV,
            correlation=key,
            **_message("recv", source, plan, size),
        )
        one.free[RECV] = max(after, begins + 1)
    base = plan.layers * plan.layer_us * (plan.heavier if stage == plan.heavy_stage else 1)
    ends = one.compute(
        "aten::addmm" if way == "F" else "aten::mm",
        varied(chance, base * (1 if way == "F" else 2), plan.noise),
        after,
    )
    if 0 <= target < plan.stages:
        key = one.launch("c10d::send")
        begins = max(one.free[SEND], ends)
        one.add(
            "kernel",
            "ncclDevKernel_SendRecv",
            begins,
            moves,
            SEND,
            correlation=key,
            **_message("send", target, plan, size),
        )
        one.free[SEND] = begins + moves
        arrived[way, batch, target] = begins + moves


def _message(name: str, peer: int, plan: Plan, size: int) -> dict[str, Any]:
    return {
        "Collective name": name,
        "dtype": "BFloat16",
        "In msg nelems": size // 2,
        "Out msg nelems": size // 2,
        "Group size": plan.stages,
        "Process Group Name": "pp",
        "Process Group Ranks": str([*range(plan.stages)]),
        "Dst Rank" if name == "send" else "Src Rank": peer,
    }


def told_of(plan: Plan, job: Job) -> dict[str, bool]:
    """What is told, by kind of fault; of a planted one whether it is told rightly."""
    diagnosis = explain(Evidence(target="planted", job=job), ())
    told = dict.fromkeys(FAULTS, False)
    for finding in diagnosis.findings:
        fault = CODES.get(finding.code)
        if fault is None:
            continue
        rank = finding.where.rank
        right = {
            "straggler": rank == plan.slow_rank,
            "link": any(f"dp{plan.slow_group}" in link for link in _groups(job, finding.links)),
            "bubble": True,
        }[fault]
        told[fault] |= right or plan.fault != fault
    wrong = [
        abs(clock.offset_ns - 1000 * (plan.clock_us[clock.rank] - plan.clock_us[0])) > EXACT_NS
        for clock in job.clocks
    ]
    largest_ns = 1000 * max(abs(offset - plan.clock_us[0]) for offset in plan.clock_us.values())
    warned = any("clock of rank" in warning for warning in job.warnings)
    if plan.fault == "clock":
        told["clock"] = not any(wrong) and warned == (largest_ns > TOLD_NS)
    else:
        told["clock"] = any(wrong) or warned
    return told


def _groups(job: Job, links: Sequence[str]) -> list[str]:
    places = [int(link.rsplit("/", 1)[1]) for link in links if link.startswith("/job/collectives/")]
    return [job.collectives[place].group or "" for place in places]


def examined(plan: Plan, chance: random.Random) -> tuple[dict[str, bool], Job]:
    """Run a job, write its files, read them, and judge what is told."""
    ranks = run_pipeline(plan, chance) if plan.kind == "pipeline" else run_data_parallel(plan, chance)
    with tempfile.TemporaryDirectory() as name:
        paths = [one.write(Path(name)) for one in ranks]
        job = merge_ranks(SerialExecutor().map_ranks(paths, reduce_rank))
    return told_of(plan, job), job


def main() -> None:
    """Plant, look, and count."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--clean", type=int, default=200)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--show", action="store_true", help="print the plan of each job that came out wrong")
    options = parser.parse_args()
    found, planted, beside, false = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for number in range(options.jobs + options.clean):
        chance = random.Random(f"{options.seed}/{number}")
        fault = FAULTS[number % len(FAULTS)] if number < options.jobs else None
        plan = draw_plan(chance, fault)
        told, job = examined(plan, chance)
        planted[fault or "clean"] += 1
        others = [name for name in FAULTS if name != fault and told[name]]
        if fault:
            found[fault] += told[fault]
            beside.update(others)
        else:
            false.update(others)
            false["jobs"] += bool(others)
        if options.show and (others or (fault and not told[fault])):
            print(
                number,
                "missed" if fault and not told[fault] else "",
                others,
                plan,
                [(s.rank, s.share, s.gain_ns) for s in job.stragglers[:3]],
                job.warnings,
                flush=True,
            )
    for fault in FAULTS:
        print(
            f"{fault:>10}: {found[fault]} of {planted[fault]} found; told beside another fault {beside[fault]}, in clean jobs {false[fault]}"
        )
    total = sum(planted[fault] for fault in FAULTS)
    print(
        f"{sum(found.values())} of {total} found ({sum(found.values()) / max(total, 1):.1%}); false alarms in {false['jobs']} of {planted['clean']} clean jobs"
    )


if __name__ == "__main__":
    main()
