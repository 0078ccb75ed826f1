"""The profile of the host, made of samples and of the source."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from statistics import fmean, median

import msgspec

from pyrometer.host.attribution import SLOW_NS, Attribution, Other, Share
from pyrometer.host.code_map import COMPREHENSIONS, CodeMap, FunctionAt, Loop, heading_of, over_of
from pyrometer.host.leaves import GARBAGE, Leaf, LeafReader
from pyrometer.host.profile import HostFunction, HostLeaf, HostLine, HostLoop, HostProfile
from pyrometer.host.samples import HostSamples
from pyrometer.place import Place
from pyrometer.quantity import Ratio, Seconds
from pyrometer.workload.script.startup._pyrometer_inside.host_stretches import GENERATORS

LEAST_SHARE = 0.005
"""Of a step, below which nothing is told."""

MOST_PLACES = 30
MOST_LEAVES = 8

FEWEST_SAMPLES = 40

WAITING = ("lock", "sleep")
"""Kinds of leaves in which a thread does nothing."""

HANDING_ON = frozenset(
    ["put", "put_nowait", "set_result", "set_exception", "notify", "notify_all", "set", "release"]
)
"""Methods that let a thread go on that waits."""

LEAST_WORK = 0.02
"""Of the time in which a thread was looked at, to count as one that others may wait for."""


def build_profile(samples: HostSamples, garbage_share: Ratio | None = None) -> HostProfile:
    """Join samples with the source of the files that they name.

    Args:
        samples: what was seen.
        garbage_share: the most of a step that collecting garbage may be told to take; null leaves it as it was seen.
    """
    return _Builder(_with_garbage(samples, garbage_share)).profile()


def _with_garbage(samples: HostSamples, most: Ratio | None) -> HostSamples:
    """The same with no more time in the garbage collector than this share."""
    seen_ns = sum(stack.ns for stack in samples.stacks if stack.garbage)
    others_ns = sum(stack.ns for stack in samples.stacks) - seen_ns
    if most is None or most >= 1 or seen_ns <= most / (1 - most) * others_ns:
        return samples
    kept = most / (1 - most) * others_ns / seen_ns
    stacks = [
        stack._replace(ns=round(stack.ns * kept)) if stack.garbage else stack for stack in samples.stacks
    ]
    return msgspec.structs.replace(samples, stacks=stacks)


class _Times:
    """Time of one place in ns, own and in all, by leaf."""

    def __init__(self) -> None:
        self.own = 0.0
        self.total = 0.0
        self.leaves: dict[Leaf, float] = defaultdict(float)


class _Builder:
    def __init__(self, samples: HostSamples) -> None:
        self._samples = samples
        self._attribution = Attribution(samples)
        self._maps: dict[str, CodeMap] = {}
        self._readers: dict[int, LeafReader] = {}
        self._lines: dict[tuple[str, int], _Times] = defaultdict(_Times)
        self._loops: dict[tuple[str, Loop], _Times] = defaultdict(_Times)
        self._functions: dict[FunctionAt, _Times] = defaultdict(_Times)
        self._line_function: dict[tuple[str, int], FunctionAt] = {}
        self._line_loop: dict[tuple[str, int], Loop | None] = {}
        self._leaves: dict[Leaf, float] = defaultdict(float)
        self._outside = 0.0
        self._all_ns = 0.0

    def profile(self) -> HostProfile:
        for share in self._attribution.shares():
            self._add(share)
        samples = self._samples
        sampled_ns, bare_ns = samples.sampled_ns, samples.bare_ns
        return HostProfile(
            steps=len(sampled_ns),
            samples=samples.looks,
            interval_s=samples.interval_ns * 1e-9,
            step_s=fmean(sampled_ns) * 1e-9 if sampled_ns else 0.0,
            bare_step_s=fmean(bare_ns) * 1e-9 if bare_ns else None,
            overhead_share=_overhead(samples),
            lines=self._told_lines(),
            loops=self._told_loops(),
            functions=self._told_functions(),
            leaves=self._told_leaves(self._leaves),
            outside_s=self._seconds(self._outside),
            notes=self._notes(),
        )

    def _notes(self) -> list[str]:
        notes = list(self._samples.notes)
        if self._all_ns > 0 and self._samples.looks < FEWEST_SAMPLES:
            notes.append(f"only {self._samples.looks} looks: the shares are rough")
        if not self._samples.stretches and self._all_ns:
            notes.append(
                "operators written as signs, such as `a @ b`, are seen at the next call: no step was watched"
            )
        return notes

    def _seconds(self, ns: float) -> Seconds:
        """Per step."""
        whole = sum(self._samples.sampled_ns) * 1e-9
        return whole * ns / self._all_ns / len(self._samples.sampled_ns) if self._all_ns else 0.0

    def _map(self, file: str) -> CodeMap:
        if file not in self._maps:
            self._maps[file] = CodeMap(file)
        return self._maps[file]

    @cached_property
    def _types(self) -> dict[FunctionAt, dict[str, str]]:
        """Types that were seen in each function, its comprehensions included."""
        found: dict[FunctionAt, dict[str, str]] = defaultdict(dict)
        for code, name, kind in self._samples.types:
            if self._attribution.owners[code] == "user":
                found[self._function(code)][name] = kind
        return found

    def _function(self, code: int) -> FunctionAt:
        known = self._samples.codes[code]
        return self._map(known.file).function_of(known)

    @cached_property
    def _workers(self) -> set[int]:
        """Threads beside the sampled one that work, or hand something on as their text says: what only sleeps keeps nobody waiting."""
        seen: dict[int, int] = defaultdict(int)
        working: dict[int, int] = defaultdict(int)
        for times, others in chain.from_iterable(self._attribution.waits.values()):
            for other in others:
                seen[other.thread] += times
                works = self._leaf_at(other).kind not in WAITING or any(map(self._hands_on, other.spots))
                working[other.thread] += times * works
        return {thread for thread, times in seen.items() if working[thread] >= LEAST_WORK * times}

    def _hands_on(self, number: int) -> bool:
        """Whether the function of an instruction gives others what they may wait for."""
        mapped = self._map(self._samples.codes[self._samples.places[number].code].file)
        node = mapped.statement_of(self._samples.places[number])
        function = None if node is None or mapped.module is None else mapped.module.function_of(node)
        calls = [part.func for part in ast.walk(function) if isinstance(part, ast.Call)] if function else []
        return any(isinstance(called, ast.Attribute) and called.attr in HANDING_ON for called in calls)

    def _waited_for(self, others: Iterable[Other]) -> tuple[Leaf, Other] | None:
        """The thread that the sampled one waits for, as far as can be told: one that works, else one that sleeps of its own accord."""
        known = [(self._leaf_at(other), other) for other in others if other.thread in self._workers]
        working = [(leaf, other) for leaf, other in known if leaf.kind not in WAITING]
        sleeping = [
            (leaf, other) for leaf, other in known if leaf.kind == "sleep" or self._is_timed(other.spots[0])
        ]
        return next(iter([*working, *sleeping]), None)

    def _parts(self, share: Share, leaf: Leaf) -> Iterator[tuple[float, Leaf, Other | None]]:
        """The time of a share; while the thread waits, divided among what those do that it waits for, where that is known."""
        waits = self._attribution.waits.get(share.spots[0], []) if leaf.kind == "lock" and share.spots else []
        known = [(times, found) for times, others in waits if (found := self._waited_for(others)) is not None]
        whole = sum(times for times, _ in known)
        if not whole:
            yield share.ns, leaf, None
        for times, (what, other) in known:
            yield share.ns * times / whole, what, other

    def _is_timed(self, number: int) -> bool:
        """Whether a call that waits says for how long at most."""
        spot = self._samples.places[number]
        call = self._map(self._samples.codes[spot.code].file).node_of(spot)
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return False
        fewest = 2 if call.func.attr in {"get", "acquire"} else 1
        return len(call.args) >= fewest or any(keyword.arg == "timeout" for keyword in call.keywords)

    def _add(self, share: Share) -> None:
        own = self._leaf(share)
        for ns, leaf, other in self._parts(share, own):
            self._all_ns += ns
            self._leaves[leaf] += ns
            stacks = [(share.spots, own)] if other is None else [(other.spots, leaf), (share.spots, own)]
            if not share.spots:
                self._outside += ns
            self._add_stacks(ns, leaf, stacks)

    def _add_stacks(self, ns: float, leaf: Leaf, stacks: Sequence[tuple[tuple[int, ...], Leaf]]) -> None:
        """Time of a stack, or of two where the line that waits in the second has as good as called the first."""
        lines: dict[tuple[str, int], None] = {}
        loops: dict[tuple[str, Loop], Leaf] = {}
        functions: set[FunctionAt] = set()
        for spots, of_loops in stacks:
            for number in spots:
                spot = self._samples.places[number]
                code = self._samples.codes[spot.code]
                mapped = self._map(code.file)
                line = (code.file, mapped.line_of(spot) or code.first_line)
                function = self._function(spot.code)
                around = list(mapped.loops_around(spot, code))
                self._line_function.setdefault(line, function)
                if around or line not in self._line_loop:
                    self._line_loop[line] = around[0] if around else None
                if not lines:
                    for own in (self._lines[line], self._functions[function]):
                        own.own += ns
                        own.leaves[leaf] += ns
                lines[line] = None
                functions.add(function)
                loops |= {(code.file, loop): of_loops for loop in around}
        for times in (*(self._lines[line] for line in lines), *(self._functions[at] for at in functions)):
            times.total += ns
        for loop, of_loop in loops.items():
            self._loops[loop].total += ns
            self._loops[loop].leaves[of_loop] += ns

    def _leaf(self, share: Share) -> Leaf:
        return GARBAGE if share.garbage else self._leaf_at(share)

    def _leaf_at(self, where: Share | Other) -> Leaf:
        if not where.spots:
            return LeafReader(None, {}).leaf(None, where.above)
        spot = self._samples.places[where.spots[0]]
        mapped = self._map(self._samples.codes[spot.code].file)
        reader = self._readers.setdefault(
            spot.code, LeafReader(mapped.module, self._types.get(self._function(spot.code), {}))
        )
        is_slow = self._attribution.mean_ns.get(where.spots[0], 0.0) >= SLOW_NS
        return reader.leaf(mapped.node_of(spot), where.above, operation=spot.operation, is_slow=is_slow)

    def _place(self, line: tuple[str, int], function: str | None = None) -> Place:
        file, number = line
        known = self._line_function.get(line)
        return Place(
            file=file,
            line=number,
            function=function or (None if known is None else known.name),
            source=self._map(file).text_of(number),
        )

    def _told_leaves(self, leaves: dict[Leaf, float]) -> list[HostLeaf]:
        ordered = sorted(leaves.items(), key=lambda item: (-item[1], item[0]))
        return [
            HostLeaf(kind=leaf.kind, name=leaf.name, seconds_per_step=self._seconds(ns))
            for leaf, ns in ordered[:MOST_LEAVES]
            if ns >= LEAST_SHARE * self._all_ns
        ]

    def _told_lines(self) -> list[HostLine]:
        told = [
            HostLine(
                where=self._place(line),
                own_s=self._seconds(times.own),
                total_s=self._seconds(times.total),
                leaves=self._told_leaves(times.leaves),
                loop=self._loop_place(line[0], self._line_loop.get(line)),
            )
            for line, times in self._lines.items()
            if times.total >= LEAST_SHARE * self._all_ns
        ]
        return sorted(told, key=lambda line: (-line.own_s, -line.total_s))[:MOST_PLACES]

    def _loop_place(self, file: str, loop: Loop | None) -> Place | None:
        if loop is None:
            return None
        return Place(file=file, line=loop.lineno, source=self._map(file).text_of(loop.lineno))

    def _told_loops(self) -> list[HostLoop]:
        told = []
        for (file, loop), times in self._loops.items():
            if times.total < LEAST_SHARE * self._all_ns:
                continue
            mapped = self._map(file)
            function = mapped.function_around(loop)
            counts = None if self._samples.edges is None else self._rounds(file, loop, function)
            told.append(
                HostLoop(
                    where=Place(
                        file=file,
                        line=loop.lineno,
                        function=function.name,
                        source=mapped.text_of(loop.lineno),
                    ),
                    over=over_of(loop),
                    rounds_per_step=None if counts is None else counts[0],
                    entered_per_step=None if counts is None else counts[1],
                    total_s=self._seconds(times.total),
                    leaves=self._told_leaves(times.leaves),
                )
            )
        return sorted(told, key=lambda loop: -loop.total_s)[:MOST_PLACES]

    def _rounds(self, file: str, loop: Loop, function: FunctionAt) -> tuple[float, float]:
        """Rounds and entries in the watched step: how often its heading followed a line within, or one without."""
        heading, last = heading_of(loop), loop.end_lineno or loop.lineno
        codes = self._codes_of(file, loop, function)
        rounds = entered = 0
        for code, before, line, times in self._samples.edges or ():
            if code not in codes or line != heading:
                continue
            if loop.lineno <= before <= last:
                rounds += times
            else:
                entered += times
        steps = max(self._samples.watched, 1)
        return rounds / steps, entered / steps

    def _codes_of(self, file: str, loop: Loop, function: FunctionAt) -> set[int]:
        own, around = set(), set()
        for number, code in enumerate(self._samples.codes):
            if code.file != file or self._attribution.owners[number] != "user":
                continue
            part = code.name.rpartition(".")[2] in COMPREHENSIONS
            if part and code.first_line == loop.lineno:
                own.add(number)
            elif not part and self._function(number).first_line == function.first_line:
                around.add(number)
        is_statement = not hasattr(loop, "generators")
        return around if is_statement or not own else own

    def _told_functions(self) -> list[HostFunction]:
        calls = self._calls()
        dearest: dict[FunctionAt, tuple[str, int]] = {}
        for line in sorted(self._lines, key=lambda line: (-self._lines[line].own, -self._lines[line].total)):
            dearest.setdefault(self._line_function[line], line)
        told = [
            HostFunction(
                where=self._place(dearest[function], function.name),
                first_line=function.first_line,
                own_s=self._seconds(times.own),
                total_s=self._seconds(times.total),
                calls_per_step=calls.get(function) if calls is not None else None,
            )
            for function, times in self._functions.items()
            if times.total >= LEAST_SHARE * self._all_ns and function in dearest
        ]
        return sorted(told, key=lambda function: (-function.own_s, -function.total_s))[:MOST_PLACES]

    def _calls(self) -> dict[FunctionAt, float] | None:
        if self._samples.edges is None:
            return None
        found: dict[FunctionAt, float] = defaultdict(float)
        for number, times in self._samples.calls:
            code = self._samples.codes[number]
            if not code.flags & GENERATORS and code.name.rpartition(".")[2] not in COMPREHENSIONS:
                found[self._function(number)] += times
        steps = max(self._samples.watched, 1)
        return {function: times / steps for function, times in found.items()}


def _overhead(samples: HostSamples) -> float | None:
    """By how much sampling lengthened a step; of a script from whole steps, which a busy machine lengthens too."""
    if samples.overheads:
        return median(samples.overheads)
    sampled_ns, bare_ns = samples.sampled_ns, samples.bare_ns
    return median(sampled_ns) / median(bare_ns) - 1 if sampled_ns and bare_ns else None
