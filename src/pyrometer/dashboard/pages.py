"""The pages: the list, reports, comparisons, targets with their trends, files, and runs under way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

import msgspec
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from pyrometer.dashboard.answers import AbsentError, EndedError, answering, as_page, as_report, asset
from pyrometer.dashboard.documents import Series, running_now
from pyrometer.dashboard.index import Filter
from pyrometer.dashboard.several import beside
from pyrometer.dashboard.stored import StoredRuns
from pyrometer.dashboard.week import sentence
from pyrometer.errors import InputError
from pyrometer.guard.history.stored import RECORD
from pyrometer.record import to_dict
from pyrometer.report.payloads.block import block_of, element
from pyrometer.report.payloads.history import FEWEST, history_view
from pyrometer.store.marks import Marks, with_baseline, with_note
from pyrometer.store.run import Run, RunSummary
from pyrometer.store.running import Running

MOST_SEVERAL = 12
"""Runs beside each other."""

MOST_SENT = 8192
"""Bytes of a form."""


class Pages:
    """Every page of one store."""

    def __init__(self, runs: StoredRuns) -> None:
        self._runs = runs
        self._seen: dict[str, Running] = {}

    @answering
    def runs(self, request: Request) -> Response:
        """`/`: the list of runs, filtered and in pages, below those that are going on."""
        asked, number = asked_of(request)
        listing = self._runs.listing()
        listed = self._runs.find(asked, number)
        return as_page(
            "runs.html.j2",
            folder=self._runs.name,
            asked=asked,
            found=listed,
            kinds=listing.kinds,
            num_runs=len(listing.runs),
            num_targets=listing.num_targets,
            damaged=listing.damaged,
            rows=[(run, listing.trend(run), self._runs.seen(run.id)) for run in listed.runs],
            marks=self._runs.marks(),
            said=sentence(self._runs.week()),
            running=running_now(self._runs.running()),
            address=Addresses("/", to_dict(asked)),
        )

    @answering
    def run(self, request: Request) -> Response:
        """`/runs/<id>`: the report; `/runs/last` leads to the newest."""
        listing, run_id = self._runs.listing(), request.path_params["run_id"]
        if run_id == "last" and listing.runs:
            return RedirectResponse(f"/runs/{listing.runs[0].id}", 303)
        run = self._known(run_id)
        others = {"Files": f"/runs/{run.id}/files", "Note and baseline": f"/runs/{run.id}/note"}
        pinned = self._runs.marks().baselines.get(run.target)
        if pinned is not None and pinned != run.id and pinned in listing.by_id:
            others["Compare with the baseline"] = comparing(pinned, run.id)
        before = listing.trend(run, 2)[:-1]
        if before:
            others["Compare with the run before"] = comparing(before[0].id, run.id)
        return as_report(self._runs.report(run.id), others, target=run.target)

    @answering
    def compare(self, request: Request) -> Response:
        """`/compare?a=…&b=…`: two runs beside each other."""
        a, b = (self._known(run_id).id for run_id in pair_of(request))
        others = {"Run A": f"/runs/{a}", "Run B": f"/runs/{b}", "Swap A and B": comparing(b, a)}
        return as_report(self._runs.comparison_page(a, b), others)

    @answering
    def several(self, request: Request) -> Response:
        """`/several?run=…&run=…`: more than two runs beside each other, the baseline or the oldest first."""
        runs = [
            self._runs.run(self._known(run_id).id)
            for run_id in dict.fromkeys(request.query_params.getlist("run"))
        ]
        if not 2 <= len(runs) <= MOST_SEVERAL:
            raise InputError(f"{len(runs)} runs were chosen; choose 2 to {MOST_SEVERAL} in the list")
        return as_page(
            "several.html.j2",
            rows=beside(runs, self._runs.marks()),
            seen=self._runs.seen,
            marks=self._runs.marks(),
        )

    @answering
    def note(self, request: Request) -> Response:
        """`/runs/<id>/note`: what people say of a run, to be changed there."""
        return as_page(
            "note.html.j2", run=self._known(request.path_params["run_id"]), marks=self._runs.marks()
        )

    async def write_note(self, request: Request) -> Response:
        """The same, sent as a form: its note, and whether it is the baseline of its target."""
        given = dict(parse_qsl((await request.body())[:MOST_SENT].decode("utf-8", "replace")))
        return await run_in_threadpool(self._write_note, request, given)

    @answering
    def _write_note(self, request: Request, given: Mapping[str, str]) -> Response:
        run = self._known(request.path_params["run_id"])

        def changed(marks: Marks) -> Marks:
            marks = with_note(marks, run.id, given.get("note", ""))
            if given.get("baseline"):
                return with_baseline(marks, run.target, run.id)
            unpinned = marks.baselines.get(run.target) == run.id
            return with_baseline(marks, run.target, None) if unpinned else marks

        self._runs.change_marks(changed)
        return RedirectResponse(f"/?target={quote(run.target, safe='')}", 303)

    @answering
    def targets(self, request: Request) -> Response:
        """`/targets`: all targets with their trends, in pages; with `?target=…` one of them over time."""
        listing, target = self._runs.listing(), request.query_params.get("target")
        if target is None:
            return self._all_targets(request)
        runs = [run for run in listing.runs if run.target == target]
        if not runs:
            raise AbsentError(f"{target}: no run of this target is stored in {self._runs.name}")
        series = self._runs.history(target)
        return as_page(
            "target.html.j2",
            target=target,
            num_runs=len(runs),
            series=series,
            charts=[self._chart(number, column) for number, column in enumerate(series)],
            others=[run for run in runs if run.median_s is None],
        )

    def _all_targets(self, request: Request) -> Response:
        listing, q = self._runs.listing(), request.query_params.get("q", "").strip()
        listed = listing.find_targets(q, number_of(request))
        return as_page(
            "targets.html.j2",
            folder=self._runs.name,
            q=q,
            found=listed,
            num_targets=listing.num_targets,
            rows=[(run, listing.longest_trend(run.target)) for run in listed.runs],
            address=Addresses("/targets", {"q": q}),
        )

    @answering
    def guard(self, _request: Request) -> Response:
        """`/guard`: what the guard recorded from commit to commit."""
        if not any(run.kind == RECORD for run in self._runs.listing().runs):
            raise AbsentError(
                f"no commit is recorded in {self._runs.name}; pyrometer guard record makes the first one"
            )
        return as_report(self._runs.guard_page(), {})

    @answering
    def files(self, request: Request) -> Response:
        """`/runs/<id>/files`: what is kept with a run."""
        run: Run = self._runs.run(self._known(request.path_params["run_id"]).id)
        return as_page("files.html.j2", run=run)

    @answering
    def file(self, request: Request) -> Response:
        """`/runs/<id>/files/<name>`: one of them, to be saved and never shown."""
        run, name = self._known(request.path_params["run_id"]), request.path_params["name"]
        if all(file.name != name for file in self._runs.run(run.id).artifacts):
            raise AbsentError(f"run {run.id} has no file {name!r}")
        parts, saved_as = (
            self._runs.file(run.id, name),
            f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        )
        return StreamingResponse(
            parts, media_type="application/octet-stream", headers={"content-disposition": saved_as}
        )

    @answering
    def running(self, request: Request) -> Response:
        """`/running/<id>`: a run under way, as it goes on; once it is stored, its report."""
        wanted = request.path_params["running_id"]
        going = {running.id: running for running in self._runs.running()}
        self._seen |= going
        if wanted not in self._seen:
            raise AbsentError(f"{wanted}: no such run is going on")
        one = self._seen[wanted]
        if wanted in going:
            return as_page("running.html.j2", now=running_now([one])[0])
        stored = self._stored(one)
        if stored is not None:
            return RedirectResponse(f"/runs/{stored.id}", 303)
        raise EndedError(
            f"{one.kind} of {one.target}: it was stopped or failed, and nothing of it was stored"
        )

    @answering
    def asset(self, request: Request) -> Response:
        """`/assets/<name>`: a style sheet or a script."""
        return asset(request.path_params["name"])

    @answering
    def nothing(self, request: Request) -> Response:
        """Any other address."""
        raise AbsentError(f"{request.url.path}: there is no such page")

    def _known(self, run_id: str) -> RunSummary:
        run = self._runs.listing().by_id.get(run_id)
        if run is None:
            raise AbsentError(f"{run_id}: no such run in {self._runs.name}")
        return run

    def _stored(self, running: Running) -> RunSummary | None:
        """The run that became of an announcement: the first of its kind and target since."""
        runs = [
            run
            for run in self._runs.listing().runs
            if (run.kind, run.target) == (running.kind, running.target)
        ]
        return min(
            (run for run in runs if run.created_at >= running.started_at),
            key=lambda run: run.number,
            default=None,
        )

    def _chart(self, number: int, series: Series) -> Markup:
        """The data that a history is drawn from; nothing where there is nothing to draw."""
        if len(series.runs) < FEWEST:
            return Markup()
        try:
            newest = self._runs.document(series.runs[-1].run_id)
        except InputError:
            return Markup()
        of_none = msgspec.structs.replace(newest, run_id=None)  # the page is of all of them
        return element(block_of(f"history/{number}", history_view(series.runs, of_none)))


class Addresses(NamedTuple):
    """Addresses of a list under the same conditions."""

    path: str
    asked: Mapping[str, str]

    def page(self, number: int) -> str:
        """Another page of it."""
        return self._address({**self.asked, "page": str(number)})

    def without(self, name: str) -> str:
        """Without one of its conditions."""
        return self._address({**self.asked, name: ""})

    def _address(self, values: Mapping[str, str]) -> str:
        given = {name: value for name, value in values.items() if value and (name, value) != ("page", "1")}
        return f"{self.path}?{urlencode(given)}" if given else self.path


def asked_of(request: Request) -> tuple[Filter, int]:
    """The filter and the number of the page that an address names."""
    given = request.query_params
    asked = Filter(**{name: given.get(name, "").strip() for name in Filter.__struct_fields__})
    return asked, number_of(request)


def number_of(request: Request) -> int:
    """The number of the page that an address names; what is no number is the first page."""
    number = request.query_params.get("page", "1")
    return int(number) if number.isascii() and number.isdigit() and len(number) < 9 else 1


def comparing(a: str, b: str) -> str:
    """Address of two runs beside each other."""
    return f"/compare?{urlencode({'a': a, 'b': b})}"


def pair_of(request: Request) -> tuple[str, str]:
    """The two runs that an address names.

    Raises:
        InputError: one is missing.
    """
    given = request.query_params
    if not given.get("a") or not given.get("b"):
        raise InputError("a comparison is of two runs: choose one as A and one as B in the list")
    return given["a"], given["b"]
