"""`pyrometer rollout start`: begin a rollout."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import click

from pyrometer.cli.rolling import print_rollout, whoami
from pyrometer.cli.saving import store_place
from pyrometer.errors import InputError
from pyrometer.settings import parse_duration, parse_share


@click.command(name="start")
@click.argument("name")
@click.option("--old", help="The version that is there.")
@click.option("--new", help="The version that is to replace it, by a name or hash of its artefact.")
@click.option("--stages", metavar="SHARES", help="Shares of the new version.  [default: 1%,5%,20%,50%,100%]")
@click.option(
    "--gate",
    "gates",
    multiple=True,
    metavar="SHARE",
    help="A stage that is left only after approval; repeatable.",
)
@click.option("--min-time", metavar="DURATION", help="A stage takes at least so long.  [default: 60s]")
@click.option(
    "--threshold",
    "thresholds",
    multiple=True,
    metavar="NAME=DURATION",
    help="Latency whose exceedance is counted, such as p99=25ms; repeatable.",
)
@click.option(
    "--assign",
    type=click.Choice(["batch", "unit", "replicas"]),
    help="Who is assigned by chance; replicas are not.  [default: batch]",
)
@click.option(
    "--control",
    metavar="VERSION",
    help="Name of a second copy of the old version, as rarely asked as the new one, to compare with.",
)
@click.option(
    "--lever",
    "levers",
    multiple=True,
    help="Roll each of these levers out by itself, each with its own test; repeatable.",
)
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A TOML file with more of the plan: alpha, metrics, min_samples, deadline_s and others.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@store_place
def command(
    *,
    name: str,
    as_json: bool,
    store_location: str,
    plan_file: Path | None,
    levers: tuple[str, ...],
    **given: Any,
) -> None:
    """Begin the rollout NAME at its first stage.

    Processes that serve follow it by `pyrometer.rollout.agent.Agent`, and `pyrometer rollout watch NAME` moves it. The store may also be
    redis://HOST/0.
    """
    from pyrometer.rollout.controller import start_rollout
    from pyrometer.rollout.ledger import open_ledger
    from pyrometer.rollout.levers import lever_plans

    plan = _plan(name, _table(plan_file), given)
    ledger = open_ledger(store_location)
    plans = lever_plans(plan, levers) if levers else [plan]
    for one in plans:
        start_rollout(ledger, one, whoami())
    for one in plans:
        print_rollout(ledger, one.name, as_json=as_json)


def _table(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file}: cannot be read as TOML: {error}; correct it") from error


def _plan(name: str, table: dict[str, Any], given: dict[str, Any]) -> Any:
    from pyrometer.record import from_dict
    from pyrometer.rollout.counts import bucket_end
    from pyrometer.rollout.plan import Plan, default_metrics

    thresholds = dict(_threshold(text) for text in given["thresholds"])
    fields = {
        "old": given["old"], "new": given["new"], "assignment": given["assign"],
        "control": given["control"],
        "stages": [parse_share(part) for part in given["stages"].split(",")] if given["stages"] else None,
        "gates": [parse_share(part) for part in given["gates"]] or None,
        "min_s": parse_duration(given["min_time"]) if given["min_time"] else None,
    }  # fmt: skip
    agreement, tolerate = table.pop("agreement", None), table.pop("tolerate", 1.0)
    table |= {"name": name} | {key: value for key, value in fields.items() if value is not None}
    unknown = table.keys() - set(Plan.__struct_fields__)
    if unknown:
        raise InputError(
            f"--plan: {', '.join(sorted(unknown))}: no such setting; legal are {', '.join(Plan.__struct_fields__)}, agreement, tolerate"
        )
    for key in ("old", "new"):
        if key not in table:
            raise InputError(f"rollout {name!r}: which version is {key}? pass --{key} VERSION")
    ends = {key: bucket_end(limit) for key, limit in thresholds.items()}
    table.setdefault("metrics", []).extend(default_metrics(ends, agreement=agreement, tolerate=tolerate))
    return from_dict(Plan, _plain(table))


def _plain(table: dict[str, Any]) -> Any:
    import msgspec

    return msgspec.to_builtins(table)


def _threshold(text: str) -> tuple[str, float]:
    name, sign, limit = text.partition("=")
    if not sign or not name:
        raise InputError(f"--threshold {text}: legal is NAME=DURATION, such as p99=25ms")
    return name, parse_duration(limit)
