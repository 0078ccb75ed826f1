"""The verdict over HTTP, for controllers that move traffic themselves: Argo Rollouts' `web` provider and Flagger's webhooks.

`GET /verdict` is JSON: `successCondition: result.verdict == "safe"` and `failureCondition: result.verdict == "worse"` with
`jsonPath: "{$}"`. `/gate` answers 200 where the next stage may come and 403 otherwise, `/rollback` 200 where the version is to be taken
back, as Flagger's webhooks of these names expect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import msgspec

from pyrometer.monitor.export.server import Page
from pyrometer.rollout.controller import Look

_JSON = "application/json"


def verdict_of(look: Look) -> dict[str, object]:
    """What a look found, in plain words and figures."""
    state, judged = look.state, look.judged
    may_go_on = state.status == "promoted" or (
        judged.outcome == "safe" and state.status in {"running", "waiting"}
    )
    taken_back = state.status in {"rolled back", "aborted"} or judged.outcome == "worse"
    return {
        "rollout": state.plan.name,
        "verdict": "worse" if taken_back else "safe" if may_go_on else "undecided",
        "reason": judged.reason,
        "state": state.status,
        "share": state.share,
        "stage": state.stage + 1,
        "tests": {test.metric: test.outcome for test in judged.tests},
    }


def verdict_pages(latest: Mapping[str, Look]) -> dict[str, Callable[[], Page]]:
    """The pages of one rollout, or of several below their names.

    Args:
        latest: what was last seen of each; filled while the pages are served.
    """
    pages: dict[str, Callable[[], Page]] = {}
    for name in list(latest):
        for prefix in {"", f"/{name}"} if len(latest) == 1 else {f"/{name}"}:
            pages[f"{prefix}/verdict"] = partial(_page, latest, name, None)
            pages[f"{prefix}/gate"] = partial(_page, latest, name, "safe")
            pages[f"{prefix}/rollback"] = partial(_page, latest, name, "worse")
    return pages


def _page(latest: Mapping[str, Look], name: str, wanted: str | None) -> Page:
    found = verdict_of(latest[name])
    status = 200 if wanted is None or found["verdict"] == wanted else 403
    return Page(_JSON, msgspec.json.encode(found), status)
