"""`threads`: how many threads an operator may use."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch

from pyrometer.hardware.cpu import read_cpu
from pyrometer.tuning.levers.lever import Lever, Parameters, held, lever
from pyrometer.tuning.levers.subject import Subject


@lever
class Threads(Lever):
    """Set the number of threads within an operator."""

    name = "threads"
    title = "set the number of threads within an operator"
    why = (
        "Small operators lose more to waking threads than they win; hyper-threads share one unit for arithmetic. "
        "It holds for the whole process: other models in it are affected."
    )
    stage = "device"
    place = "settings"
    kinds = frozenset({"inference", "training"})
    prior = 0.97
    pasted = ("torch.set_num_threads($num)",)

    def refuses(self, subject: Subject) -> str | None:
        """Threads matter where the work is on the CPU."""
        if subject.device.type != "cpu":
            return f"the work is on {subject.device.type}"
        return None if self.choices(subject) else "there is one core"

    def choices(self, subject: Subject) -> list[Parameters]:
        """Cores, half of them, and one; less what is set already."""
        cpu = read_cpu()
        cores = max(1, min(cpu.usable_cpus, cpu.physical_cores or cpu.usable_cpus))
        wanted = dict.fromkeys([cores, max(1, cores // 2), 1])
        return [{"num": num} for num in wanted if num != torch.get_num_threads()]

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """The workload's sessions hold it."""
        subject.work = subject.work.variant(threads=parameters["num"])

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """Torch says so."""
        now = torch.get_num_threads()
        return None if now == parameters["num"] else f"torch uses {now} threads"

    def process_settings(self, parameters: Parameters) -> list[AbstractContextManager[Any]]:
        """Hold it, and restore what was set."""
        return [held(torch.set_num_threads, parameters["num"], torch.get_num_threads())]
