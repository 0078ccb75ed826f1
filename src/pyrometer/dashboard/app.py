"""The dashboard as an ASGI application."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp

from pyrometer.dashboard.access import Guard
from pyrometer.dashboard.api import Api
from pyrometer.dashboard.events import Events
from pyrometer.dashboard.monitored import Monitored
from pyrometer.dashboard.pages import Pages
from pyrometer.dashboard.stored import StoredRuns
from pyrometer.monitor.live.watch import LiveWatch
from pyrometer.store.place import Location


def make_app(
    location: Location,
    *,
    token: str,
    names: Iterable[str],
    monitor: tuple[LiveWatch, str],
    is_ending: Callable[[], bool] = lambda: False,
) -> ASGIApp:
    """The dashboard of one store.

    Args:
        location: of the store, which may be made later.
        token: what a browser must show.
        names: what the server may be called by.
        monitor: what reads the ticks of monitors, and where from.
        is_ending: whether streams of events should end.
    """
    runs = StoredRuns(location)
    pages, api, monitored = Pages(runs), Api(runs), Monitored(*monitor, is_ending)
    routes = [
        Route("/", pages.runs),
        Route("/runs/{run_id}", pages.run),
        Route("/runs/{run_id}/files", pages.files),
        Route("/runs/{run_id}/note", pages.note, methods=["GET"]),
        Route("/runs/{run_id}/note", pages.write_note, methods=["POST"]),
        Route("/runs/{run_id}/files/{name}", pages.file),
        Route("/running/{running_id}", pages.running),
        Route("/compare", pages.compare),
        Route("/several", pages.several),
        Route("/targets", pages.targets),
        Route("/guard", pages.guard),
        Route("/events", Events(runs, is_ending).answer),
        Route("/assets/{name}", pages.asset),
        Route("/monitor", monitored.page),
        Route("/monitor/events", monitored.events),
        Route("/api/monitor", monitored.data),
        Route("/api/runs", api.runs),
        Route("/api/runs/{run_id}", api.run),
        Route("/api/compare", api.compare),
        Route("/api/history", api.history),
        Route("/api/guard", api.guard),
        Route("/api/running", api.running),
        Route("/{path:path}", pages.nothing),
    ]
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False
    return Guard(app, token, names)
