"""The same as JSON, for scripts: `/api/runs`, `/api/runs/<id>`, `/api/compare`, `/api/history`, `/api/guard`, `/api/running`."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from pyrometer.dashboard.answers import AbsentError, answering, as_json
from pyrometer.dashboard.documents import History, RunningRuns, RunsPage, running_now
from pyrometer.dashboard.pages import asked_of, pair_of
from pyrometer.dashboard.stored import StoredRuns
from pyrometer.errors import InputError


class Api:
    """Every answer in JSON."""

    def __init__(self, runs: StoredRuns) -> None:
        self._runs = runs

    @answering
    def runs(self, request: Request) -> Response:
        """`/api/runs?q=…&kind=…&target=…&commit=…&page=…`."""
        asked, number = asked_of(request)
        listing = self._runs.listing()
        runs, total, page, pages = self._runs.find(asked, number)
        return as_json(
            RunsPage(
                asked=asked, total=total, page=page, pages=pages, damaged=listing.damaged, runs=list(runs)
            )
        )

    @answering
    def run(self, request: Request) -> Response:
        """`/api/runs/<id>`: all that is stored of a run."""
        return as_json(self._runs.run(self._known(request.path_params["run_id"])))

    @answering
    def compare(self, request: Request) -> Response:
        """`/api/compare?a=…&b=…`: what `pyrometer compare --json` prints."""
        a, b = (self._known(run_id) for run_id in pair_of(request))
        return as_json(self._runs.comparison(a, b))

    @answering
    def history(self, request: Request) -> Response:
        """`/api/history?target=…`."""
        target = request.query_params.get("target")
        if not target:
            raise InputError("a history is of a target: pass ?target=…, as it stands in the list")
        if not any(run.target == target for run in self._runs.listing().runs):
            raise AbsentError(f"{target}: no run of this target is stored in {self._runs.name}")
        return as_json(History(target=target, series=self._runs.history(target)))

    @answering
    def guard(self, _request: Request) -> Response:
        """`/api/guard`: what `pyrometer guard history --json` prints."""
        return as_json(self._runs.guard())

    @answering
    def running(self, _request: Request) -> Response:
        """`/api/running`."""
        return as_json(RunningRuns(running=running_now(self._runs.running())))

    def _known(self, run_id: str) -> str:
        if run_id not in self._runs.listing().by_id:
            raise AbsentError(f"{run_id}: no such run in {self._runs.name}")
        return run_id
