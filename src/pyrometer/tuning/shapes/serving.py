"""Running calls at the sizes of their buckets: compiled at the first call, checked at some, and looked up at all others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from pyrometer.tuning.shapes.axes import Axes, CallArguments, Sizes
from pyrometer.tuning.shapes.checking import PaddingError
from pyrometer.tuning.shapes.fitting import Fitting
from pyrometer.tuning.shapes.graphs import GraphMaker
from pyrometer.tuning.shapes.passes import timed
from pyrometer.tuning.shapes.policy import BucketPolicy
from pyrometer.tuning.shapes.routes import Route, Routes
from pyrometer.tuning.shapes.signature import signature_of
from pyrometer.tuning.shapes.store import Bucket, BucketStore
from pyrometer.tuning.shapes.tally import Tally
from pyrometer.workload.state import Kept, kept_module

DEPENDS = (
    "the result depends on what the padding holds, and is right for what inputs are padded with: such buckets are compared with "
    "the model at calls 2, 4, 8, 16, … too"
)
NUM_TIMED = 5
"""Calls of each bucket that are timed, with a synchronisation each, for the statistics."""


@dataclass(eq=False)
class Serving:
    """The buckets of one model at work.

    Attributes:
        model: a module or a function.
        axes: what varies.
        policy: limits, and how often results are checked.
        fitting: pads, masks and cuts.
        graphs: compiles.
        store: the buckets.
        tally: counts.
        instead: what all calls are given to, where buckets were measured to lose and `when_slower` says so.
        routes: what is known of calls that came before.
        lock: held while the store changes.
    """

    model: Callable[..., Any]
    axes: Axes
    policy: BucketPolicy
    fitting: Fitting
    graphs: GraphMaker
    store: BucketStore
    tally: Tally
    instead: Callable[..., Any] | None = None
    routes: Routes = field(init=False)
    lock: Any = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.routes = Routes(self.model)

    def route(self, call: CallArguments) -> Route | None:
        """The route of a call that came like this before; `None` where there is none, or a check is due."""
        route = self.routes.find(*call)
        if route is None or (route.pads and self._due(route.bucket, route.bucket.calls + 1)):
            return None
        return route

    def follow(self, route: Route, call: CallArguments) -> Any:
        """Run a call along its route."""
        self.store.use(route.bucket)
        start = time.perf_counter()
        args, kwargs = route.padded(call)
        copying_s = time.perf_counter() - start
        try:
            output = route.bucket.graph.call(*args, **kwargs)
            if route.pads:
                start = time.perf_counter()
                output = route.cropped(output)
                copying_s += time.perf_counter() - start
            return output
        finally:
            self.tally.hit(route.bucket, route.sizes, route.lost, copying_s)

    def run(self, call: CallArguments, sizes: Sizes, edges: Sizes, *, traffic: bool = True) -> Any:
        """Run a call at the size of its bucket; a new bucket is compiled, and padding checked where that is due.

        Raises:
            PaddingError: padding changes the result.
        """
        start = time.perf_counter()
        padded = self.fitting.padded(call, sizes, edges)
        signature = signature_of(self.model, *padded)
        copying_s = time.perf_counter() - start
        bucket = self._bucket(edges, signature, traffic=traffic)
        if bucket is None:
            return self.run_dynamic("fallback", call)
        if not bucket.ready or (sizes != edges and self._due(bucket, bucket.calls)):
            with bucket.lock:
                output = self._checked(bucket, call, padded, sizes, traffic=traffic)
            if self.graphs.plain:
                return output
        else:
            self.tally.add("hits")
            output = self._timed(bucket, padded)
        start = time.perf_counter()
        if sizes != edges:
            output = self.fitting.cropped(output, sizes)
        lost = 1 - self.policy.cost(sizes) / self.policy.cost(edges)
        if traffic:
            copying_s += time.perf_counter() - start
            self.tally.serve(bucket, sizes, lost, copying_s)
        if len(bucket.times_s) >= NUM_TIMED and (bucket.checked or sizes == edges):
            self.routes.learn(call, Route.of(call, sizes, bucket, lost=lost, fitting=self.fitting))
        return output

    def run_dynamic(self, reason: str, call: CallArguments) -> Any:
        """Run a call in the graph for any size."""
        self.tally.add(reason)
        return self.graphs.dynamic.call(*call[0], **call[1])

    def run_instead(self, instead: Callable[..., Any], call: CallArguments) -> Any:
        """Run a call the way that was measured to be faster than buckets."""
        self.tally.pass_on()
        return instead(*call[0], **call[1])

    def run_plain(self, call: CallArguments) -> Any:
        """Run the model itself."""
        self.tally.add("fallback")
        return self.model(*call[0], **call[1])

    def drop_unless(self, kept: set[Sizes]) -> None:
        """Drop the buckets of all other edges, and all routes."""
        for bucket in self.store:
            if bucket.edges not in kept:
                self.store.drop(bucket)
        self.routes.forget()

    def _bucket(self, edges: Sizes, signature: Hashable, *, traffic: bool) -> Bucket | None:
        """The bucket of a call, a new one if need be; `None` when its signature is too rare for a graph of its own."""
        with self.lock:
            bucket = self.store.find(edges, signature)
            if bucket is None:
                if not self.store.deserves(edges, signature) and traffic:
                    return None
                bucket = Bucket(edges, self.graphs.for_bucket())
                self.store.add(signature, bucket)
        self.tally.enter(bucket)
        return bucket

    def _due(self, bucket: Bucket, number: int) -> bool:
        """Whether a padded call is to be checked: the first of its bucket, and some of the later ones."""
        every = self.policy.check_every
        if not bucket.checked:
            return True
        return every > 0 and (number % every == 0 or (bucket.depends and number & (number - 1) == 0))

    def _timed(self, bucket: Bucket, padded: CallArguments) -> Any:
        if len(bucket.times_s) >= NUM_TIMED:
            return bucket.graph.call(*padded[0], **padded[1])
        output, seconds = timed(bucket.graph.call, padded)
        bucket.times_s.append(seconds)
        return output

    def _checked(
        self, bucket: Bucket, call: CallArguments, padded: CallArguments, sizes: Sizes, *, traffic: bool
    ) -> Any:
        """Compile where that is still to do, and check the result where anything was padded."""
        state = kept_module(self.model)
        try:
            if bucket.ready:
                self.tally.add("hits")
                output = self._timed(bucket, padded)
            else:
                output = self._compiled(bucket, padded, traffic=traffic)
            if self.graphs.plain:
                with self.lock:
                    self.store.drop(bucket)
                return output if not traffic else self._unpadded(bucket, call, sizes, state, output)
            if sizes != bucket.edges and self._due(bucket, bucket.calls):
                self.tally.add("checks")
                after = kept_module(self.model)
                state.restore()
                try:
                    error = self.fitting.check(call, padded, sizes, bucket.edges, output=output)
                    if not bucket.checked and self.policy.hostile_values:
                        bucket.depends = self.fitting.challenge(call, padded, sizes, bucket.edges)
                finally:
                    after.restore()
                if bucket.depends:
                    self.tally.note(DEPENDS)
                bucket.checked, bucket.max_error = True, max(bucket.max_error or 0.0, error.max_rel)
        except BaseException as error:
            with self.lock:
                self.store.drop(bucket)
            if isinstance(error, PaddingError):
                state.restore()
            raise
        return output

    def _compiled(self, bucket: Bucket, padded: CallArguments, *, traffic: bool) -> Any:
        output, note = self.graphs.compile(bucket, padded)
        if note is not None:
            self.tally.note(note)
        if self.graphs.plain:
            return output
        self.tally.compiled(bucket, "misses" if traffic else "precompiled")
        with self.lock:
            self.store.trim()
        bucket.ready = True
        return output

    def _unpadded(self, bucket: Bucket, call: CallArguments, sizes: Sizes, state: Kept, output: Any) -> Any:
        """The result of the first call of a model without a graph: run again where its inputs were padded."""
        if sizes == bucket.edges:
            self.tally.add("fallback")
            return output
        state.restore()
        return self.run_plain(call)
