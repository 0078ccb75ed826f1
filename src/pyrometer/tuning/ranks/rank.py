"""What torchrun starts for each rank: the script with levers in force, held at the end of its steps, or let run.

`python -P -m pyrometer.tuning.ranks.rank serve SOCKET` forks ranks that run a script and answer requests;
`… apply RECIPE script.py …` runs a script to its end.
"""

from __future__ import annotations

import importlib
import os
import queue
import random
import runpy
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy.random.bit_generator
import torch

from pyrometer.bench.comparison.interleaving import seed_all
from pyrometer.bench.fresh import Failure
from pyrometer.bench.memory import meter_for
from pyrometer.bench.worker import Ran, Run
from pyrometer.errors import PyrometerError, UserProgramError
from pyrometer.record import Record
from pyrometer.source.ownership import owner_of
from pyrometer.tuning.levers.applying import not_applied, tryable
from pyrometer.tuning.levers.choice import LeverChoice
from pyrometer.tuning.levers.rank_subject import RankSubject
from pyrometer.tuning.levers.registry import find_lever
from pyrometer.tuning.ranks.forks import serve_forks
from pyrometer.tuning.ranks.messages import WHERE, Answer, Hello
from pyrometer.tuning.ranks.watch import Watch
from pyrometer.tuning.recipe.recipe import load_recipe
from pyrometer.tuning.recipe.signature import require_same_model, signature_of
from pyrometer.tuning.trials import protocol, results
from pyrometer.workload.failure import described


class HeldScript:
    """One rank of a script, which waits at the end of each step for what it is asked.

    A thread reads the requests: it also says where the script stands when that hangs, and ends the process when nobody is left
    who asks.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lines = connection.makefile("rb")
        self._requests: queue.Queue[bytes] = queue.Queue()
        self._left = results.TRAINING_STEPS
        self._times: list[float] = []
        self._began_cpu = 0.0
        self.rank = int(os.environ["RANK"])
        self._send(Hello(rank=self.rank))
        self._opened = msgspec.json.decode(self._lines.readline(), type=protocol.Open)
        self._subject = RankSubject()
        self._watch = Watch(self._subject, self._stepped)
        self._script = threading.get_ident()
        threading.Thread(target=self._read, daemon=True).start()

    def run(self, argv: Sequence[str]) -> None:
        """Run the script to its end, or until nobody asks any more."""
        seed_from_outside(self.rank)
        try:
            apply_to(self._subject, self._opened.levers)
            with self._watch:
                self._last = time.perf_counter()
                run_script(argv)
        except (Exception, SystemExit) as error:
            if not isinstance(error, SystemExit) or error.code not in {None, 0}:
                said = UserProgramError(f"rank {self.rank}: {described(error)}")
                self._send(Answer(failure=Failure.of(error if isinstance(error, PyrometerError) else said)))
                raise
        self._send(Answer(ended=self._watch.num_steps))

    # ---- in the script -----------------------------------------------------------------------------------------

    def _stepped(self) -> None:
        """The script has made a step: go on with it while more are asked for, else answer."""
        self._left -= 1
        if self._left == 0 and torch.cuda.is_available():
            torch.cuda.synchronize()
        now = time.perf_counter()
        self._times.append(now - self._last)
        self._last = now
        if self._watch.num_steps == 1:
            self._meter = meter_for(self._subject.device)
            self._meter.reset_peak()
        if self._left:
            return
        is_first = self._watch.num_steps == results.TRAINING_STEPS
        self._answer(self._first if is_first else self._ran)
        self._left = self._next_steps()
        self._times, self._began_cpu, self._last = [], time.process_time(), time.perf_counter()

    def _next_steps(self) -> int:
        """Answer what can be answered at once, until steps are asked for; how many."""
        handlers: dict[type[Any], Callable[[Any], Record]] = {
            protocol.Save: self._save,
            protocol.Check: self._check,
            protocol.Peak: lambda _: protocol.PeakRead(peak_bytes=self._meter.peak()),
            protocol.Survey: lambda request: survey(self._subject, request.levers),
        }
        while True:
            request = msgspec.json.decode(self._requests.get(), type=protocol.Request)
            if isinstance(request, Run):
                return request.num_calls
            self._answer(lambda asked=request: handlers[type(asked)](asked))  # type: ignore[misc]

    def _first(self) -> protocol.Opened:
        return protocol.Opened(
            name=type(self._subject.whole).__name__,
            device=str(self._subject.device),
            clock="wall",
            first_call_s=self._times[0],
            apply_s=[0.0 for _ in self._opened.levers],
            not_applied=not_applied(self._subject, self._opened.levers),
        )

    def _ran(self) -> Ran:
        return Ran(times_s=self._times, cpu_s=(time.process_time() - self._began_cpu) / len(self._times))

    def _save(self, request: protocol.Save) -> Record:
        torch.save(tuple(self._watch.learned()), f"{request.place}.{self.rank}")
        return protocol.Done()

    def _check(self, request: protocol.Check) -> Record:
        reference = results.Learning(*torch.load(f"{request.place}.{self.rank}", weights_only=True))
        learned = self._watch.learned()
        if any(find_lever(choice.lever).fix_class == "semantic" for choice in self._opened.levers):
            # What is not sent in one step is sent later: gradients of one step say nothing.
            return protocol.Checked(cases=[results.fall_error(learned, reference)])
        return protocol.Checked(cases=results.learning_errors(learned, reference))

    # ---- messages ----------------------------------------------------------------------------------------------

    def _answer(self, make: Callable[[], Record]) -> None:
        try:
            answer = Answer(result=msgspec.Raw(msgspec.json.encode(make())))
        except Exception as error:  # noqa: BLE001 - it is raised again by who asked
            answer = Answer(failure=Failure.of(error))
        self._send(answer)

    def _send(self, message: Record) -> None:
        self._connection.sendall(msgspec.json.encode(message) + b"\n")

    def _read(self) -> None:
        for line in self._lines:
            if line.strip() == WHERE:
                self._send(Answer(place=_place_of(self._script)))
            else:
                self._requests.put(line)
        os.kill(os.getpid(), signal.SIGKILL)


def seed_from_outside(rank: int) -> None:
    """Let a script that does not seed draw the same in each launch, and other values on each rank.

    Generators that NumPy and Python make without a seed take theirs from the system: here from one that is seeded.
    """
    seed_all(rank)
    entropy = random.Random(rank)  # noqa: S311 - to repeat, not to hide
    numpy.random.bit_generator.randbits = entropy.getrandbits  # type: ignore[attr-defined]
    plain = random.Random.seed

    def seed(generator: random.Random, value: Any = None, version: int = 2) -> None:
        plain(generator, entropy.getrandbits(128) if value is None else value, version)

    random.Random.seed = seed  # type: ignore[method-assign, assignment]


def _place_of(thread: int) -> str | None:
    """The innermost line of the user's own that a thread is in."""
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - documented, for just this
    own = [one for one in traceback.extract_stack(frame) if owner_of(one.filename) == "user"]
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else None


def apply_to(subject: RankSubject, levers: Sequence[LeverChoice]) -> None:
    """Fill the plan of a script that has not begun."""
    for choice in levers:
        find_lever(choice.lever).apply(subject, choice.parameters)


def survey(subject: RankSubject, names: Sequence[str]) -> protocol.Surveyed:
    """Which levers may be tried on a script that has run for some steps, and what its global batch is."""
    refused, choices = tryable(subject, names, "ranks")
    return protocol.Surveyed(
        refused=refused,
        choices=choices,
        kind="training",
        signature=signature_of(subject.whole),
        notes=[global_batch(subject, int(os.environ["WORLD_SIZE"]))],
    )


def global_batch(subject: RankSubject, num_ranks: int) -> str:
    """The batch of all ranks with its factors, as far as they are known."""
    each, times = subject.micro_batch, subject.accumulation
    if each is None or not times:
        return f"{num_ranks} ranks; the global batch is not known"
    factors = f"{num_ranks} ranks × {each} samples" + (f" × {times} accumulated" if times > 1 else "")
    return f"global batch {num_ranks * each * times} = {factors}"


def run_script(argv: Sequence[str]) -> None:
    """Run a script as Python would."""
    sys.argv[:] = list(argv)
    sys.path.insert(0, str(Path(argv[0]).resolve().parent))
    runpy.run_path(argv[0], run_name="__main__")


def run_with_recipe(path: Path, argv: Sequence[str]) -> None:
    """Run a script to its end with the levers of a recipe in force."""
    recipe, subject = load_recipe(path), RankSubject()
    levers = recipe.configuration
    apply_to(subject, levers)

    def check() -> None:
        if watch.num_steps == 1:
            require_same_model(recipe.signature, signature_of(subject.whole))
        if watch.num_steps == results.TRAINING_STEPS and (missing := not_applied(subject, levers)):
            sys.stderr.write(f"pyrometer: not in force: {missing}\n")

    watch = Watch(subject, check)
    with watch:
        run_script(argv)


def main() -> None:
    """Do what the arguments say."""
    mode, place, *argv = sys.argv[1:]
    if mode == "serve":
        importlib.import_module("torch._dynamo")  # which the first optimizer imports, in each fork anew
        order = serve_forks(place)
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(order.place)
        HeldScript(connection).run(order.argv)
        return
    try:
        run_with_recipe(Path(place), argv)
    except PyrometerError as error:
        if os.environ["RANK"] == "0":  # the others say the same
            sys.stderr.write(f"error: {error}\n")
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
