"""Snapshots of known truth: a program is played on the simulated allocator, which writes down what torch would."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path
from typing import Any

import pytest

from pyrometer.memory.snapshots.allocator.blocks import Block
from pyrometer.memory.snapshots.allocator.settings import AllocatorSettings, check_settings
from pyrometer.memory.snapshots.allocator.simulator import CachingAllocator
from pyrometer.memory.snapshots.build import report_snapshot
from pyrometer.memory.snapshots.read import read_snapshot

MIB = 1 << 20
USER = ("train_step", "/home/me/train.py")


def stack(*frames: tuple[str, str, int]) -> list[dict[str, Any]]:
    """A call stack as torch writes it, innermost first."""
    return [{"name": name, "filename": file, "line": line} for name, file, line in frames]


STACKS = {
    "none": [],
    "parameters": stack(
        ("__init__", "/env/torch/nn/modules/linear.py", 106), ("build", "/home/me/model.py", 5)
    ),
    "forward": stack(
        ("at::_ops::empty_memory_format::call(c10::SymIntArrayRef)", "??", 0),
        ("at::_ops::mm::call(at::Tensor const&, at::Tensor const&)", "??", 0),
        ("forward", "/env/torch/nn/modules/linear.py", 125),
        ("_call_impl", "/env/torch/nn/modules/module.py", 1762),
        ("forward", "/home/me/model.py", 12),
        ("step", "/home/me/train.py", 30),
    ),
    "backward": stack(
        ("torch::autograd::generated::MmBackward0::apply(std::vector<at::Tensor>&&)", "??", 0),
        ("torch::autograd::Engine::evaluate_function", "??", 0),
    ),
    "accumulate": stack(("torch::autograd::AccumulateGrad::apply", "??", 0)),
    "optimizer_state": stack(
        ("_init_group", "/env/torch/optim/adam.py", 170),
        ("step", "/env/torch/optim/adam.py", 230),
        ("step", "/home/me/train.py", 33),
    ),
    "optimizer": stack(
        ("_multi_tensor_adam", "/env/torch/optim/adam.py", 600), ("step", "/home/me/train.py", 33)
    ),
    "inputs": stack(
        ("default_collate", "/env/torch/utils/data/_utils/collate.py", 8), ("load", "/home/me/data.py", 3)
    ),
    "workspace": stack(("at::cuda::getCUDABlasLtWorkspace()", "??", 0)),
    "empty_cache": stack(
        ("empty_cache", "/env/torch/cuda/memory.py", 200), ("loop", "/home/me/train.py", 40)
    ),
    "user": stack(("train_step", "/home/me/train.py", 7)),
    "other": stack(("evaluate", "/home/me/evaluate.py", 9)),
}

PIPE = {"private": (1, 0)}


class Recorder:
    """A program on a simulated device, with recording on."""

    def __init__(
        self,
        settings: str = "",
        *,
        capacity_mib: int | None = None,
        clock: bool = True,
        start_us: int = 10**15,
    ) -> None:
        self.text = settings
        checked = check_settings(settings)
        assert not checked.problems
        self.settings: AllocatorSettings = checked.settings
        capacity = None if capacity_mib is None else capacity_mib * MIB
        self.allocator = CachingAllocator(self.settings, capacity, self._observe)
        self.events: list[dict[str, Any]] = []
        self.annotations: list[dict[str, Any]] = []
        self.live: dict[str, Block] = {}
        self._stack_of: dict[Block, str] = {}
        self._clock, self._now, self._stack, self._pools = clock, start_us, "none", {0: (0, 0)}

    def alloc(self, name: str, size: int, stack: str = "user", stream: int = 0, pool: int = 0) -> bool:
        """Allocate; an OOM is written down and reported as False."""
        self._stack = stack
        self._pools[pool] = (pool, 0)
        block = self.allocator.malloc(size, stream, pool)
        if block is None:
            held = self.allocator.reserved_bytes
            left = (self.allocator.capacity_bytes or 0) - held
            self._write("oom", {"device_free": left, "size": -(-size // 512) * 512, "stream": stream}, pool)
            return False
        self.live[name] = block
        self._stack_of[block] = stack
        return True

    def free(self, *names: str, pending: bool = False) -> None:
        for name in names:
            block = self.live[name] if pending else self.live.pop(name)
            self._stack = self._stack_of[block]
            self.allocator.request_free(block)
            if not pending:
                self.allocator.complete_free(block)

    def empty_cache(self) -> None:
        self._stack = "empty_cache"
        self.allocator.empty_cache()

    def annotate(self, name: str, stage: str) -> None:
        self.annotations.append({"stage": stage, "name": name, "device": 0, "time_us": self._now})

    def _observe(self, what: str, address: int, size: int, block: Block) -> None:
        pool = next(n for (n, _), pool in self.allocator._pools.items() if pool is block.pool)
        self._write(what, {"addr": address, "size": size, "stream": block.stream}, pool)

    def _write(self, action: str, values: dict[str, Any], pool: int) -> None:
        self._now += 10
        self.events.append(
            {"action": action, **values, "frames": STACKS[self._stack], "time_us": self._now,
             "compile_context": "N/A", "user_metadata": "", "pool_id": self._pools[pool]}
        )  # fmt: skip

    def segments(self) -> list[dict[str, Any]]:
        """What the allocator holds, as torch writes it."""
        segments = []
        for head in self.allocator.segments.values():
            block: Block | None = head
            run: list[Block] = []
            while block is not None:
                if block.mapped:
                    run.append(block)
                if run and (not block.mapped or block.after is None):
                    segments.append(self._segment(run))
                    run = []
                block = block.after
        return segments

    def _segment(self, run: list[Block]) -> dict[str, Any]:
        pool = next(n for (n, _), pool in self.allocator._pools.items() if pool is run[0].pool)
        pending = {block for block in run if block.in_use and block not in self.live.values()}
        used = [block for block in run if block.in_use]
        return {
            "device": 0,
            "address": run[0].address,
            "total_size": sum(block.size for block in run),
            "allocated_size": sum(block.size for block in used if block not in pending),
            "active_size": sum(block.size for block in used),
            "requested_size": sum(block.requested for block in used),
            "stream": run[0].stream,
            "segment_type": "small" if run[0].pool.small else "large",
            "segment_pool_id": self._pools[pool],
            "is_expandable": run[0].expandable,
            "frames": STACKS["user"],
            "blocks": [
                {
                    "address": block.address,
                    "size": block.size,
                    "requested_size": block.requested or 77,  # of free blocks the file keeps stale figures
                    "state": "active_pending_free"
                    if block in pending
                    else ("active_allocated" if block.in_use else "inactive"),
                    "frames": STACKS[self._stack_of.get(block, "other")],
                }
                for block in run
            ],
        }

    def raw(self, generation: str = "E", *, keep_last: int | None = None) -> Any:
        """The whole snapshot as torch of some age would dump it.

        Args:
            generation: `0` a bare list of segments; `A` 2023, without frames, pools, settings and clock; `B` with them but
                no clock and settings; `C` with clock, settings and annotations; `D` with compile context and metadata;
                `E` with pools of events.
            keep_last: size of the ring buffer.
        """
        events = [dict(event) for event in self.events][-(keep_last or len(self.events) or 1) :]
        segments = self.segments()
        if generation in "0A":
            segments = [_oldest(segment) for segment in segments]
        if generation == "0":
            return segments
        gone = {"A": "frames time_us compile_context user_metadata pool_id", "B": "time_us compile_context user_metadata pool_id",
                "C": "compile_context user_metadata pool_id", "D": "pool_id", "E": ""}[generation].split()  # fmt: skip
        for event in events:
            for key in gone + ([] if self._clock else ["time_us"]):
                event.pop(key, None)
        whole: dict[str, Any] = {"segments": segments, "device_traces": [events]}
        if generation in "CDE":
            split = self.settings.max_split_bytes
            divisions = self.settings.roundup_power2_divisions
            whole["allocator_settings"] = {
                "PYTORCH_CUDA_ALLOC_CONF": self.text,
                "max_split_size": -1 if split is None else split,
                "garbage_collection_threshold": self.settings.garbage_collection_threshold,
                "expandable_segments": self.settings.expandable_segments,
                "roundup_power2_divisions": {
                    str(1 << i): (divisions[i] if divisions else 0) for i in range(16)
                },
            }
            whole["external_annotations"] = self.annotations
        return whole


def _oldest(segment: dict[str, Any]) -> dict[str, Any]:
    kept = {
        key: segment[key]
        for key in (
            "device",
            "address",
            "total_size",
            "stream",
            "segment_type",
            "allocated_size",
            "active_size",
        )
    }
    kept["blocks"] = [
        {"size": block["size"], "state": block["state"]}
        | ({"history": [{"addr": block["address"], "real_size": block["requested_size"], "frames": block["frames"]}]}
           if block["state"] != "inactive" else {})
        for block in segment["blocks"]
    ]  # fmt: skip
    return kept


class Files:
    """Writes snapshots and reads them again."""

    STACKS = STACKS
    MIB = MIB

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._count = 0

    def recorder(self, settings: str = "", **more: Any) -> Recorder:
        return Recorder(settings, **more)

    def write(self, raw: Any, protocol: int = 4, *, packed: bool = False) -> Path:
        return self.write_bytes(pickle.dumps(raw, protocol), packed=packed)

    def write_bytes(self, data: bytes, *, packed: bool = False) -> Path:
        self._count += 1
        path = self.folder / f"snapshot{self._count}.pickle{'.gz' if packed else ''}"
        path.write_bytes(gzip.compress(data) if packed else data)
        return path

    def read(self, raw: Any, protocol: int = 4) -> Any:
        return read_snapshot(self.write(raw, protocol))

    def report(self, recorder: Recorder | Any, **more: Any) -> Any:
        raw = recorder.raw() if isinstance(recorder, Recorder) else recorder
        return report_snapshot(self.read(raw), **more)


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path)


@pytest.fixture
def training():
    """Three steps of training a model of 8 × 4 MiB, with Adam."""

    def run(recorder: Recorder, steps: int = 3) -> Recorder:
        layers = range(8)
        for i in layers:
            recorder.alloc(f"weight{i}", 4 * MIB, "parameters")
        for step in range(steps):
            recorder.alloc("batch", 2 * MIB, "inputs")
            for i in layers:
                recorder.alloc(f"act{i}", 6 * MIB, "forward")
            recorder.alloc("scratch", 3 * MIB, "forward")
            recorder.free("scratch")
            for i in reversed(layers):
                recorder.alloc(f"flow{i}", 6 * MIB, "backward")
                recorder.alloc(f"grad{i}", 4 * MIB, "backward")
                if i + 1 in layers:
                    recorder.free(f"flow{i + 1}")
                recorder.free(f"act{i}")
            recorder.free("flow0")
            recorder.annotate("Optimizer.step#Adam.step", "START")
            for i in layers:
                if step == 0:
                    recorder.alloc(f"m{i}", 4 * MIB, "optimizer_state")
                    recorder.alloc(f"v{i}", 4 * MIB, "optimizer_state")
                recorder.alloc("temp", 4 * MIB, "optimizer")
                recorder.free("temp")
            recorder.annotate("Optimizer.step#Adam.step", "END")
            recorder.free(*[f"grad{i}" for i in layers], "batch")
        return recorder

    return run
