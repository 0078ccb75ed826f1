"""One model that is served: prepared, answering, loaded anew, and ended."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from pyrometer.errors import InputError, PyrometerError, UserProgramError
from pyrometer.garbage import Settled
from pyrometer.listening import bound_socket, require_token, url_of
from pyrometer.monitor.monitor import Monitor
from pyrometer.quantity import Seconds, format_percent
from pyrometer.rollout.agent import Agent, Followed
from pyrometer.rollout.router import Router
from pyrometer.serving.batching.policy import BatchPolicy
from pyrometer.serving.batching.service_times import ServiceTimes
from pyrometer.serving.planning.arrivals import Arrival, recorded
from pyrometer.serving.planning.plan import Model, evaluate
from pyrometer.serving.running.batcher import Batcher, Observer
from pyrometer.serving.running.canary import Canary, ShadowCanary, require_fitting
from pyrometer.serving.running.counting import Counting
from pyrometer.serving.running.memory import MemoryWatch
from pyrometer.serving.running.versions import Versions
from pyrometer.serving.running.worker import Worker
from pyrometer.serving.settings import TOKEN, ServeSettings
from pyrometer.serving.starting.preparing import Prepared, Preparing, Say
from pyrometer.serving.starting.source import Source
from pyrometer.tuning.shapes.axes import Dims

if TYPE_CHECKING:  # it needs uvicorn, which a plan does without
    from pyrometer.serving.http.app import Application

LEAST_FOR_PREDICTION = 100


class Candidate(NamedTuple):
    """A version beside the first: it gets a share of the batches, that of a rollout, or all of them in the shadow."""

    source: Source
    share: float = 0.0
    is_shadow: bool = False
    rollout: Followed | None = None

    def agent(self, version: str) -> Agent | None:
        """Who routes and counts beside this version, where a rollout says the share.

        Raises:
            StoreError: the rollout cannot be read.
            InputError: it is about something else, or there is none.
        """
        if self.rollout is None:
            return None
        agent = self.rollout.agent(shadow=self.is_shadow)
        require_fitting(agent.state.plan, version, next_version(version), is_shadow=self.is_shadow)
        return agent


class Deployment:
    """Serves one model until it is asked to end.

    Args:
        source: what is served.
        settings: how.
        buckets: sizes that vary.
        candidate: another version beside it.
        token: that requests need.
        url: where it is reached, if somebody else listens.
        monitoring: settings of its monitor that win over those of the project.
        say: is told how far it is.

    Raises:
        UsageError: other machines could connect, and no token keeps them out.
        InputError: the address cannot be used.
    """

    def __init__(
        self,
        source: Source,
        settings: ServeSettings,
        buckets: Dims,
        *,
        candidate: Candidate | None = None,
        token: str | None = None,
        url: str | None = None,
        monitoring: Mapping[str, Any] | None = None,
        say: Say = lambda _: None,
    ) -> None:
        require_token(settings.host, token, TOKEN)
        self._agent = None if candidate is None else candidate.agent(settings.version)
        self._canary: Canary | None = None
        self.settings = settings
        self.name = settings.name or source.name()
        self.token = token
        self._source = source
        self._candidate = candidate
        self._monitoring = monitoring or {}
        self._preparing = Preparing(settings, buckets, say)
        self.listens = url is None
        self._bound = bound_socket(settings.host, settings.port) if self.listens else None
        self.url = url or url_of(cast("socket.socket", self._bound))
        self._open: dict[str, Prepared] = {}
        self._reloading = asyncio.Lock()
        self._server: Any = None
        self._settled = Settled()
        self.too_much = ""
        """What its memory was when it reached its limit; Ray ends a replica by it, as `run` ends by itself."""

    @property
    def first(self) -> Prepared:
        """The version that was prepared first, or the one that took its place."""
        return self._open[self._current]

    @property
    def beside(self) -> str | None:
        """Another version, in words."""
        if self._candidate is None:
            return None
        name = next(name for name in self._open if name != self._current)
        where = self._candidate.source.target
        if self._agent is not None:
            rollout = self._agent.state.plan.name
            does = "computes beside, unseen," if self._candidate.is_shadow else "answers"
            return f"version {name} ({where}) {does} the share of rollout {rollout}"
        if self._candidate.is_shadow:
            return f"version {name} ({where}) in the shadow: it runs, and is compared"
        return f"version {name} ({where}) answers {format_percent(self._candidate.share)} of the batches"

    @property
    def policy(self) -> BatchPolicy:
        """When batches are closed."""
        return self.settings.policy(self.first.most_rows)

    def prepare(self) -> Prepared:
        """Load, tune, prove, size and warm every version.

        Raises:
            PyrometerError: one cannot be served.
        """
        self._current = self.settings.version
        self._open[self._current] = self._preparing.prepare(self._source, self._current, Worker())
        if self._candidate is not None:
            besides = {next_version(self._current): self._candidate.source}
            if self._agent is not None and self._agent.state.plan.control:
                besides[self._agent.state.plan.control] = self._source
            for name, source in besides.items():
                self._open[name] = self._preparing.prepare(
                    source, name, Worker(), most_rows=self.first.most_rows
                )
        return self.first

    async def run(self, on_ready: Callable[[], None] = lambda: None) -> None:
        """Answer until a signal, or `stop`.

        Raises:
            UserProgramError: memory reached its limit; what was accepted has its answers.
        """
        from pyrometer.serving.http.server import InferenceServer

        settings = self.settings
        app = self.application()
        self._server = InferenceServer(app, drain_s=settings.drain_s, slow_s=settings.slow_s)
        assert self._bound is not None
        bound, self._bound = self._bound, None
        with self.watched(app), self._reloaded_by_signal():
            try:
                await self._server.run_until_ended(bound, on_ready)
            finally:
                app.batcher.close()
        if self.too_much:
            raise UserProgramError(
                f"memory: {self.too_much} bytes (most-memory); what was accepted was answered; start the server again, and "
                "see what the model keeps by pyrometer memory TARGET"
            )

    @contextlib.contextmanager
    def watched(self, app: Application) -> Iterator[None]:
        """Within the block the application is watched, and its rollout followed."""
        following = contextlib.nullcontext() if self._canary is None else self._canary.following()
        with app.monitor, self._settled, following:
            yield

    def application(
        self,
        *,
        labels: dict[str, str] | None = None,
        metrics: Callable[[], Awaitable[bytes]] | None = None,
        may_reload: bool = True,
    ) -> Application:
        """What answers on the running loop; `watched` starts its monitor.

        Args:
            labels: of all its metrics.
            metrics: makes the page of metrics, where it tells of more than this process.
            may_reload: whether requests may have the target loaded anew.
        """
        from pyrometer.serving.http.app import Application

        settings = self.settings
        device = str(self.first.program.session.device)
        monitor = Monitor(model=self.name, device=device, labels=labels, **self._monitoring)
        self.counting = counting = Counting(monitor)
        self._versions = Versions(self.first.program)
        self._canary = self._admit_candidate(counting)
        times = ServiceTimes.of(self.first.points)
        batcher = Batcher(
            self._versions,
            self.policy,
            times,
            limit_s=settings.hang_s,
            observer=self._canary or counting,
            tolerance=settings.tolerance,
        )
        app = Application(
            self.name,
            batcher,
            monitor,
            counting,
            most_bytes=settings.most_body_bytes,
            token=self.token,
            reload=self.reload if may_reload and self._source.may_change else None,
            predict=self._predicted,
            metrics=metrics,
        )
        monitor.add(MemoryWatch(settings.most_memory_bytes, self._preparing.say, self._end_for_memory))
        return app

    def _end_for_memory(self, evidence: str) -> None:
        self.too_much = evidence
        if self._server is not None:
            self.stop()

    def stop(self) -> None:
        """Begin to end, from any thread: accepted requests are answered first."""
        self._server.stop()

    def close(self) -> None:
        """Let the models go, and what the targets had changed."""
        if self._bound is not None:
            self._bound.close()
        for name in list(self._open)[::-1]:
            self._let_go(name)

    async def reload(self) -> str:
        """Load the target anew beside the running version, and let it take over once it is warm and proved.

        Returns:
            The name of the new version.

        Raises:
            PyrometerError: it cannot be served; the present one goes on.
        """
        async with self._reloading:
            name = next_version(self._current)
            first = self.first
            fresh = await asyncio.to_thread(
                self._preparing.prepare, self._source, name, Worker(), anew=True, most_rows=first.most_rows
            )
            self._open[name] = fresh
            try:
                gone = self._versions.swap(fresh.program)
            except InputError:
                self._let_go(name)
                raise
            self._current = name
            for one in gone:
                self._let_go(one)
            fresh.program.session.activate()
            self._settled.renew()
            return name

    def _admit_candidate(self, observer: Observer) -> Canary | None:
        if self._candidate is None:
            return None
        name, *_ = besides = [name for name in self._open if name != self._current]
        for one in besides:
            self._versions.add(self._open[one].program)
        if self._agent is not None:
            canary = (ShadowCanary if self._candidate.is_shadow else Canary)(self._agent, observer)
            self._versions.route(canary.choose, canary.choose_shadow)
            return canary
        if self._candidate.is_shadow:
            self._versions.shadow = name
        else:
            share = self._candidate.share
            # Per batch and by chance: the judge of a rollout can trust nothing less.
            router = Router({self._current: 1.0 - share, name: share}, key=self.name, sticky=False)
            self._versions.route(router.choose)
        return None

    def _let_go(self, name: str) -> None:
        prepared = self._open.pop(name)
        prepared.program.worker.end()
        prepared.close()

    @contextlib.contextmanager
    def _reloaded_by_signal(self) -> Iterator[None]:
        """SIGHUP loads the target anew, where the loop runs in the main thread."""
        loop = asyncio.get_running_loop()
        tasks: set[asyncio.Task[Any]] = set()

        def again() -> None:
            task = loop.create_task(self._try_reload())
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        can = self._source.may_change and hasattr(signal, "SIGHUP")
        try:
            if can:
                loop.add_signal_handler(signal.SIGHUP, again)
        except (ValueError, RuntimeError):  # not the main thread
            can = False
        try:
            yield
        finally:
            if can:
                loop.remove_signal_handler(signal.SIGHUP)

    async def _try_reload(self) -> None:
        try:
            name = await self.reload()
            self._preparing.say(f"version {name} takes over")
        except PyrometerError as error:
            self._preparing.say(f"the present version stays: {error}")

    def model(self, since_s: Seconds = 0.0) -> Model:
        """What a plan knows of the model: what it took since then in this server, which runs or has run."""
        program = self.first.program
        points, paces = self.counting.service(self.first.points, since_s)
        return Model(points, program.signature.inputs, program.shaping, program.row_edges, paces)

    def _predicted(self) -> dict[str, Any] | None:
        """What the policy should do to the most recent requests."""
        recent = list(self.counting.recent)
        if len(recent) < LEAST_FOR_PREDICTION:
            return None
        names = [spec.name for spec in self.first.program.signature.inputs]
        shaping = self.first.program.shaping
        arrivals = sorted(
            Arrival(
                one.at_s, () if shaping is None else shaping.shapes_of(names, one.sizes, one.rows), one.rows
            )
            for one in recent
        )
        shapes = "alike" if shaping is None else "buckets"
        found = evaluate(
            self.model(), recorded(arrivals), self.policy, name="as set", shapes=shapes, replays=20
        )
        return dict(msgspec.to_builtins(found))


def next_version(version: str) -> str:
    """The number after, or a number behind a name.

    >>> next_version("1"), next_version("v2.1"), next_version("main")
    ('2', 'v2.2', 'main-2')
    """
    head = version.rstrip("0123456789")
    number = version[len(head) :]
    return f"{head}{int(number) + 1}" if number else f"{version}-2"
