"""The `pyrometer` command: finds the verb, and turns errors into one line and an exit code."""

from __future__ import annotations

import atexit
import contextlib
import difflib
import errno
import os
import sys
import threading
import traceback
from importlib import import_module
from typing import Any

import click

from pyrometer.errors import ExitCode, PyrometerError
from pyrometer.version import __version__

VERBS = {
    "check": "measure, observe and explain a program: a short answer and one HTML report",
    "bench": "time a workload, compare two, or search a matrix of configurations",
    "tune": "try changes that could make a program faster, keep those that are proved, write a recipe",
    "scale": "predict step time, memory and cost of a training on many ranks",
    "trace": "show where the time goes, in trace files of one or many ranks or in a new capture",
    "compile": "show what torch.compile does: graphs, graph breaks and rewrites, recompilations, cost",
    "memory": "show where the bytes go: peak, leaks, predictions, checkpoint plan, allocator snapshots",
    "lint": "check source code for slow or wrong PyTorch, and fix it; needs no torch",
    "guard": "compare a change with its base in CI: what became worse, by how much, and why",
    "audit": "go through a checklist (model, memory, compute, data, compilation, production) and score it",
    "rule": "explain a rule: what it finds, why it costs, an example and its fix",
    "calibrate": "measure the smallest difference this machine can resolve, and its compute and bandwidth peaks",
    "runs": "list stored runs",
    "show": "print a stored run again",
    "compare": "show two stored runs side by side",
    "export": "write a stored run as JSON, Markdown or HTML",
    "prune": "delete old runs from the store",
    "ui": "browse stored and running measurements",
    "serve": "serve a model over HTTP with dynamic batching, or plan what a batching policy would do to requests",
    "monitor": "what production says: a live view, dashboards and alert rules, the analysis of logs",
    "rollout": "let a new version in by evidence: stages, always-valid tests, automatic rollback",
    "mcp": "serve the verbs to coding assistants over the Model Context Protocol",
    "env": "print the machine, versions and settings that results depend on",
}


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""What the system says of a disk without room."""


class Verbs(click.Group):
    """Loads a verb's module only when that verb is called, so that `--help` imports no torch."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Every verb, the most used first."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The click command `command` of the module `pyrometer.cli.<verb>`."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = import_module(f"pyrometer.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb that the first word names; a misspelt one is told with the nearest."""
        if args[0] not in VERBS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], VERBS, n=1)
            text = f"did you mean {near[0]!r}?" if near else f"legal are {', '.join(VERBS)}"
            ctx.fail(f"No such verb {args[0]!r}; {text}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the verbs without importing them."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="pyrometer")
@click.option(
    "--debug", is_flag=True, expose_value=False, help="Show the traceback of an error; also after the verb."
)
def cli() -> None:
    """Measure, explain and guard the speed of PyTorch programs.

    TARGET is file.py:factory, package.module:factory, an exported program (.pt2), or script.py -- its arguments.
    """


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code; the only place that prints errors."""
    arguments, debug = _without_debug(sys.argv[1:] if argv is None else argv)
    try:
        result = cli.main(args=arguments, prog_name="pyrometer", standalone_mode=False)
    except PyrometerError as error:
        return _report(error, error.exit_code, debug=debug)
    except click.ClickException as error:
        return _misused(error)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return 130
    except BrokenPipeError:
        # The reader went away (`| head`); keep the interpreter from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except Exception as error:  # noqa: BLE001 - a fault of our own is told in one line too
        return _report(_unexpected(error), ExitCode.FAILURE, debug=debug)
    return int(result) if isinstance(result, int) else ExitCode.OK


def _unexpected(error: Exception) -> PyrometerError:
    """What nothing below has put in words of its own: a disk without room, or a fault of ours."""
    if isinstance(error, OSError) and error.errno in _FULL:
        text = f"{error.filename or 'stdout'}: cannot be written: {error.strerror}; free some space"
    else:
        text = f"internal fault, {type(error).__name__}: {error}; `pyrometer --debug …` shows where, please report it"
    unexpected = PyrometerError(text)
    unexpected.__cause__ = error
    return unexpected


def _without_debug(arguments: list[str]) -> tuple[list[str], bool]:
    """Take `--debug` out, before or after the verb; what follows `--` belongs to the user's script."""
    ours = arguments[: arguments.index("--")] if "--" in arguments else arguments
    kept = [argument for argument in ours if argument != "--debug"]
    return kept + arguments[len(ours) :], len(kept) < len(ours)


def _misused(error: click.ClickException) -> int:
    """Tell what is wrong with the command line, in one line with where it is explained; without any words the help itself."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show(file=sys.stderr)
        return ExitCode.FAILURE
    said = " ".join(error.format_message().split()).removesuffix(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    verb = context.command_path if context is not None else "pyrometer"
    click.echo(f"error: {_redacted(said)}; see `{verb} --help`", err=True)
    return ExitCode.FAILURE


def _redacted(said: str) -> str:
    from pyrometer.redaction import redacted  # its patterns take longer to compile than the help does

    return redacted(said)


def _report(error: PyrometerError, code: int, *, debug: bool) -> int:
    if debug:
        traceback.print_exception(error)
    click.echo(f"error: {_redacted(str(error))}", err=True)
    return code


def run() -> Any:
    """Entry point of the console script."""
    code = main()
    if not sys.modules.keys().isdisjoint({"torch", "polars"}):
        _leave(code)
    sys.exit(code)


def _leave(code: int) -> None:
    """End the process without taking every object of torch or of a trace apart, which takes a tenth of a second to a whole one.

    What is registered for the end runs all the same, and threads that the program waits for are waited for.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 - what the interpreter itself calls at its end
    atexit._run_exitfuncs()  # noqa: SLF001 - likewise
    with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or the reader went away
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
