"""The one comment of a pull or merge request: written when there is news, brought up to date when it is there.

::

    python -m pyrometer.report.gates.sticky report.json comment.md

It is what the CI actions call. Without a token that may write, as in pull requests from forks, nothing is written and that is no
failure: the job's summary says the same.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyrometer.guard.gate import GuardReport
from pyrometer.record import from_json
from pyrometer.report.gates.comment import MARKER, has_news

TIMEOUT_S = 30.0
MOST_CHARACTERS = 60_000
"""Of a comment; hosts take 65,536."""

REFUSED = (401, 403, 404)
PER_PAGE = 100


@dataclass(frozen=True)
class Discussion:
    """Where the comments of a request are.

    Attributes:
        comments: address of the list, to which a new one is posted.
        one: address of a single comment, without its number.
        update: method that changes one.
        headers: that say who asks.
    """

    comments: str
    one: str
    update: str
    headers: Mapping[str, str]


def discussion_of(environ: Mapping[str, str]) -> Discussion | None:
    """The request that a CI job runs for; null outside of one, or without a token."""
    token = environ.get("PYROMETER_TOKEN")
    if not token:
        return None
    if environ.get("CI_MERGE_REQUEST_IID"):
        project = f"{environ['CI_API_V4_URL']}/projects/{environ['CI_PROJECT_ID']}"
        notes = f"{project}/merge_requests/{environ['CI_MERGE_REQUEST_IID']}/notes"
        return Discussion(notes, notes, "PUT", {"PRIVATE-TOKEN": token})
    event = Path(environ.get("GITHUB_EVENT_PATH") or os.devnull)
    number = (json.loads(event.read_text() or "{}").get("pull_request") or {}).get("number")
    if number is None:
        return None
    issues = f"{environ['GITHUB_API_URL']}/repos/{environ['GITHUB_REPOSITORY']}/issues"
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
    return Discussion(f"{issues}/{number}/comments", f"{issues}/comments", "PATCH", headers)


def post(report: GuardReport, text: str, discussion: Discussion) -> str:
    """Write or update the comment; what was done.

    Raises:
        urllib.error.URLError: the host cannot be reached, or refuses.
    """
    body = text if len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS].rpartition("\n")[0] + "\n\n…"
    earlier = next((one for one in _comments(discussion) if str(one.get("body")).startswith(MARKER)), None)
    if earlier is not None:
        _ask(discussion, discussion.update, f"{discussion.one}/{earlier['id']}", {"body": body})
        return "the comment was brought up to date"
    if not has_news(report):
        return "nothing changed: no comment"
    _ask(discussion, "POST", discussion.comments, {"body": body})
    return "a comment was written"


def _comments(discussion: Discussion) -> Iterator[dict[str, Any]]:
    page = 1
    while True:
        found = _ask(discussion, "GET", f"{discussion.comments}?per_page={PER_PAGE}&page={page}", None)
        yield from found
        if len(found) < PER_PAGE:
            return
        page += 1


def _ask(discussion: Discussion, method: str, url: str, data: dict[str, str] | None) -> Any:
    if not url.startswith(("https://", "http://")):
        raise urllib.error.URLError(f"{url}: not an address of a code host")
    request = urllib.request.Request(  # noqa: S310 - checked above
        url,
        data=None if data is None else json.dumps(data).encode(),
        method=method,
        headers={**discussion.headers, "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310 - checked above
        return json.loads(answer.read() or b"null")


def main(arguments: list[str], environ: Mapping[str, str]) -> int:
    """Post the comment of a report; 0 also where nobody may write."""
    report, text = Path(arguments[0]), Path(arguments[1])
    discussion = discussion_of(environ)
    if discussion is None:
        told = "no request to comment on, or no token: see the job's summary"
    else:
        try:
            told = post(
                from_json(GuardReport, report.read_bytes()), text.read_text(encoding="utf-8"), discussion
            )
        except urllib.error.HTTPError as error:
            if error.code not in REFUSED:
                sys.stderr.write(f"the comment could not be written: {error}\n")
                return 1
            told = (
                f"the token may not comment ({error.code}), as in requests from forks: see the job's summary"
            )
        except urllib.error.URLError as error:
            sys.stderr.write(f"the comment could not be written: {error.reason}\n")
            return 1
    sys.stdout.write(f"{told}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
