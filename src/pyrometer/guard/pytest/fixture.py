"""What a test gets as `pyrometer`: it measures, compares and keeps contracts."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pyrometer.errors import ContractError, InputError, PyrometerError, UserProgramError
from pyrometer.settings import parse_bytes, parse_duration, parse_share

if TYPE_CHECKING:
    from pyrometer.bench.comparison.verdict import Verdict
    from pyrometer.bench.measurement import Measurement
    from pyrometer.guard.pytest.result import ContractResult
    from pyrometer.workload.workload import Workload

Undecided = Literal["fail", "warn", "pass"]
T = TypeVar("T")


class PyrometerWarning(UserWarning):
    """A contract that the measurement does not decide, where `--pyrometer-undecided=warn` lets it pass."""


class PyrometerFixture:
    """The fixture `pyrometer`.

    `work` is a workload (`pm.Inference`, `pm.Training`, `pm.Call`) or a function without arguments that runs one step. A
    contract that is broken fails the test; so does one that is undecided, unless the suite was told otherwise, and always
    one whose work does not run. Limits are texts such as `"10ms"`, `"2GiB"`, `"20%"`, or numbers of seconds, bytes, and
    shares of one; `budget` is the time to measure for.

    Attributes:
        measurements: taken in this test.
        verdicts: of its comparisons.
        contracts: that it kept or broke.
        num_reported: of all of these, how many a report of pytest has told already.
    """

    def __init__(self, undecided: Undecided = "fail") -> None:
        self._undecided = undecided
        self.measurements: list[Measurement] = []
        self.verdicts: list[Verdict] = []
        self.contracts: list[ContractResult] = []
        self.num_reported = 0

    def measure(self, work: Any, *inputs: Any, **options: Any) -> Measurement:
        """Measure as `pm.measure` does, with the same options.

        Raises:
            InputError: the time of a step is not that of its work, as with a coroutine.
            UserProgramError: a step raised, the first or a later one.
        """
        __tracebackhide__ = True
        from pyrometer.guard.pytest.contracts.latency import measured_time

        self.measurements.append(_of_users(lambda: measured_time(work, inputs, options)))
        return self.measurements[-1]

    def compare(self, a: Any, b: Any, **options: Any) -> Verdict:
        """Compare as `pm.compare` does, with the same options; `b` is the candidate.

        Raises:
            InputError: the sides cannot be compared.
            UserProgramError: a step raised.
        """
        __tracebackhide__ = True
        from pyrometer.bench.comparison.compare import compare
        from pyrometer.guard.pytest.program import running

        both = _of_users(lambda: (running(a, "compare"), running(b, "compare")))
        self.verdicts.append(_of_users(lambda: compare(*both, **options)))
        if self.verdicts[-1].interrupted:
            raise KeyboardInterrupt
        return self.verdicts[-1]

    def limit_latency(
        self, work: Any, limit: str | float, *, quantile: float = 0.5, budget: str | float = "5s"
    ) -> ContractResult:
        """The median step takes at most `limit`; with `quantile`, P90, P95 or P99 does."""
        __tracebackhide__ = True
        from pyrometer.guard.pytest.contracts.latency import keeps_latency

        def judge(workload: Workload) -> ContractResult:
            limit_s, budget_s = _figure(limit, parse_duration), _figure(budget, parse_duration)
            return keeps_latency(workload, limit_s, quantile, budget_s, self.measurements.append)

        return self._keep("limit_latency", work, judge, needs_operators=False)

    def limit_peak_memory(self, work: Any, limit: str | float) -> ContractResult:
        """All tensors of a step together, parameters included, take at most `limit` at any instant."""
        __tracebackhide__ = True
        from pyrometer.guard.pytest.contracts.memory import keeps_peak

        return self._keep("limit_peak_memory", work, lambda one: keeps_peak(one, _figure(limit, parse_bytes)))

    def max_graph_breaks(self, work: Any, most: int = 0) -> ContractResult:
        """`torch.compile` breaks the graph in at most so many places; what is not compiled is traced for the count."""
        __tracebackhide__ = True
        from pyrometer.guard.pytest.contracts.compilation import keeps_breaks

        return self._keep("max_graph_breaks", work, lambda one: keeps_breaks(one, most))

    def max_recompiles(self, work: Any, most: int = 0) -> ContractResult:
        """`torch.compile` compiles at most so many times again, over all inputs that the workload has."""
        __tracebackhide__ = True
        from pyrometer.guard.pytest.contracts.compilation import keeps_recompiles

        return self._keep("max_recompiles", work, lambda one: keeps_recompiles(one, most))

    def max_data_share(self, work: Any, most: str | float, *, budget: str | float = "5s") -> ContractResult:
        """A training waits for batches for at most this share of its steps."""
        __tracebackhide__ = True
        from pyrometer.guard.pytest.contracts.loading import keeps_data_share

        def judge(workload: Workload) -> ContractResult:
            return keeps_data_share(workload, _figure(most, parse_share), _figure(budget, parse_duration))

        return self._keep("max_data_share", work, judge)

    def no_graph_retained(self, work: Any) -> ContractResult:
        """No tensor outlives its step together with its autograd graph, as a loss does that is logged without `detach()`."""
        __tracebackhide__ = True
        from pyrometer.guard.pytest.contracts.graphs import keeps_no_graph

        return self._keep("no_graph_retained", work, keeps_no_graph)

    def same_outputs(
        self, work: Any, *, as_: Any, atol: float | None = None, rtol: float | None = None
    ) -> ContractResult:
        """The same numbers come out as of another workload or function, or as were recorded.

        Each value may be off by `atol + rtol · |expected|`, where one that is left out is 0; without both, by what the
        coarsest dtype of the outputs allows.
        """
        __tracebackhide__ = True
        from pyrometer.guard.pytest.contracts.outputs import keeps_outputs

        if as_ is work:
            raise InputError(
                "same_outputs: work and as_ are the same; pass what was there before the change as as_="
            )
        judge = lambda one: keeps_outputs(one, as_, atol, rtol)  # noqa: E731
        return self._keep("same_outputs", work, judge, needs_operators=False)

    def no_sync_in_step(self, work: Any) -> ContractResult:
        """No step makes the host wait for a device, as `item()` does; on a CPU, what would wait for one counts."""
        __tracebackhide__ = True
        from pyrometer.guard.pytest.contracts.waits import keeps_no_sync

        return self._keep("no_sync_in_step", work, keeps_no_sync)

    def no_leak(self, work: Any, *, steps: int = 60) -> ContractResult:
        """Memory does not grow without end over so many steps; take more than the longest period of the program."""
        __tracebackhide__ = True
        from pyrometer.guard.pytest.contracts.memory import keeps_no_leak

        return self._keep("no_leak", work, lambda one: keeps_no_leak(one, steps))

    def _keep(
        self,
        contract: str,
        work: Any,
        judge: Callable[[Workload], ContractResult],
        *,
        needs_operators: bool = True,
    ) -> ContractResult:
        """Run a contract on work that runs, and fail where it is not kept."""
        __tracebackhide__ = True
        from pyrometer.guard.pytest.program import judged

        result = _of_users(lambda: judged(contract, work, judge, needs_operators=needs_operators))
        self.contracts.append(result)
        if result.outcome == "undecided" and self._undecided == "warn":
            warnings.warn(result.sentence, PyrometerWarning, stacklevel=3)
        elif result.outcome != "kept" and (result.outcome, self._undecided) != ("undecided", "pass"):
            raise ContractError(result.text)
        return result


def _figure(given: str | float, parse: Callable[[str], T]) -> T | float:
    """A limit in the unit of its contract.

    >>> _figure("10ms", parse_duration), _figure(0.5, parse_share)
    (0.01, 0.5)
    """
    if isinstance(given, str):
        return parse(given)
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise InputError(f"limit: got {given!r}; write a text such as '10ms', '2GiB' or '20%', or a number")
    return given


def _of_users(run: Callable[[], T]) -> T:
    """Run; a failure shows the user's frames and the one of the test, and not how Pyrometer came to run the step."""
    __tracebackhide__ = True
    try:
        return run()
    except PyrometerError as error:
        failure, cause = error, error.__cause__ if isinstance(error, UserProgramError) else None
    if cause is not None:
        from pyrometer.source.ownership import owner_of

        frames = cause.__traceback__
        while frames is not None and owner_of(frames.tb_frame.f_code.co_filename) == "ours":
            frames = frames.tb_next
        cause = cause.with_traceback(frames or cause.__traceback__)
    raise failure.with_traceback(None) from cause
