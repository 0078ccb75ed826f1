"""From a parsed target to a workload: import, call the factory, look at what came back."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from pyrometer.errors import InputError, TargetError
from pyrometer.workload.failure import first_line, user_code
from pyrometer.workload.importing import TargetImports, import_file, import_root, imports_of, switch_imports
from pyrometer.workload.inference import Inference
from pyrometer.workload.inputs import Arguments
from pyrometer.workload.output import stdout_to_stderr, without_log
from pyrometer.workload.state import preserved_process, preserved_rng
from pyrometer.workload.surroundings import Surroundings, TorchSettings, preserved_surroundings
from pyrometer.workload.target import Target, factories_of, nearest
from pyrometer.workload.workload import Workload

_ABSENT = object()
_LEGAL = "a Workload, a (model, inputs) pair, or an nn.Module with example_inputs"


def load_workload(target: Target) -> Workload:
    """Import what the target names, call the factory, and make a workload of what it returns.

    The factory runs in the target's working directory with its own directory importable and `sys.argv` bare. What it
    prints goes to stderr. Its changes to the working directory and the random state are undone. Its changes to torch's
    global settings (threads, default dtype, TF32, …) belong to its program: they are undone too, but come back with
    each session of the workload.

    Raises:
        TargetError: there is no such module or factory, it needs arguments, or what it returns is no workload.
        UserProgramError: the user's code raised; says in which file and line.
        InputError: the workload was put together wrongly.
    """
    if target.kind == "script":
        names = factories_of(target.text, Path(target.place)) or f"{target.text}:NAME"
        raise TargetError(
            f"{target.text}: a script is observed as it runs, not loaded; name a factory: {names}"
        )
    if target.kind == "exported":
        return _exported(target)
    with _prepared(target) as imports:
        module = _imported(target, imports)
        work = workload_from(target.text, _made(target, _named(target, module)))
        work.surroundings = Surroundings.current()
    return work


def load_named(target: Target) -> Any:
    """Import what a target names, and return it as it is, without calling it.

    Raises:
        TargetError: there is no such module or name.
        UserProgramError: the user's code raised.
    """
    with _prepared(target) as imports:
        return _named(target, _imported(target, imports))


@contextlib.contextmanager
def _prepared(target: Target) -> Iterator[TargetImports]:
    """Where a factory runs: nothing that it does to the process stays, and nothing that it prints is on stdout."""
    directory = import_root(Path(target.place)) if target.kind == "file" else Path(target.spec.cwd)
    imports = imports_of(target.place, directory)
    with stdout_to_stderr(), preserved_surroundings(), preserved_rng(), preserved_process():
        os.chdir(target.spec.cwd)
        sys.argv[:] = [target.place]
        switch_imports(imports)
        yield imports


def _imported(target: Target, imports: TargetImports) -> ModuleType:
    """Import the target; the settings that the first import changed are changed again by each later one."""
    before = TorchSettings.current()
    module = _import(target)
    if imports.settings is None:
        imports.settings = TorchSettings.current().changes_since(before)
    before._replace(**imports.settings).apply()
    return module


def _import(target: Target) -> ModuleType:
    importlib.invalidate_caches()
    with user_code(f"{target.text}: importing it"):
        if target.kind == "file":
            _require_readable(target)
            return import_file(Path(target.place))
        try:
            return importlib.import_module(target.place)
        except ModuleNotFoundError as error:
            if error.name is not None and f"{target.place}.".startswith(f"{error.name}."):
                raise _no_module(target, error.name) from None
            raise


def _require_readable(target: Target) -> None:
    try:
        Path(target.place).open("rb").close()
    except OSError as error:  # not of the user's code: there is none to run
        raise TargetError(f"{target.text}: cannot be read: {error.strerror}") from error


def _no_module(target: Target, missing: str) -> TargetError:
    file = Path(target.spec.cwd, *target.place.split(".")).with_suffix(".py")
    hint = (
        f"; did you mean {os.path.relpath(file, target.spec.cwd)}:{target.factory}?" if file.exists() else ""
    )
    beside = [path.stem for path in Path(target.spec.cwd).iterdir() if path.is_dir() or path.suffix == ".py"]
    return TargetError(
        f"{target.text}: there is no module {missing!r} in {target.spec.cwd} nor installed{hint or nearest(missing, beside)}"
    )


def _named(target: Target, module: ModuleType) -> Any:
    found: Any = module
    for part in str(target.factory).split("."):
        found = getattr(found, part, _ABSENT)
        if found is _ABSENT:
            names = _public_names(module)
            have = f"it has {', '.join(names)}" if names else "it defines no function"
            where = Path(target.place).name if target.kind == "file" else target.place
            raise TargetError(f"{target.text}: {where} has no {part!r}{nearest(part, names) or f'; {have}'}")
    return found


def _public_names(module: ModuleType) -> list[str]:
    """The functions and workloads that a module defines itself."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (
            isinstance(value, (Workload, nn.Module)) or getattr(value, "__module__", None) == module.__name__
        )
        and (callable(value) or isinstance(value, Workload))
    ]


def _made(target: Target, found: Any) -> Any:
    """Call a factory; an object is taken as it is."""
    if isinstance(found, (Workload, nn.Module)) or not callable(found):
        return found
    needed = _required_arguments(found)
    if needed:
        raise TargetError(
            f"{target.text}: the factory needs {', '.join(needed)}; it is called without arguments: "
            "give defaults, or name a function that calls it"
        )
    return _call(target.text, found, f"{target.text}: the factory")


def _call(name: str, function: Callable[[], Any], what: str) -> Any:
    try:
        with user_code(what):
            return function()
    except InputError as error:
        raise InputError(f"{name}: {error}") from error


def _required_arguments(factory: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return []  # a builtin without a signature
    optional = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    return [p.name for p in parameters if p.default is inspect.Parameter.empty and p.kind not in optional]


def workload_from(name: str, made: Any) -> Workload:
    """Make a workload of what a factory returned.

    Args:
        name: what it is called in messages.
        made: a workload, a `(model, inputs)` pair, or a module with `example_inputs`.

    Raises:
        TargetError: it is nothing of that.
        UserProgramError: `example_inputs` raised.
    """
    try:
        if isinstance(made, Workload):
            return made
        if isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], nn.Module):
            return Inference(made[0], made[1])
        if isinstance(made, nn.Module):
            return Inference(made, _example_inputs(name, made))
    except TargetError:
        raise
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    raise TargetError(f"{name}: got {_shown(made)}; legal is {_LEGAL}")


def _shown(made: Any) -> str:
    if made is None:
        return "nothing (None): is a return missing?"
    if isinstance(made, tuple):
        return f"a tuple of {', '.join(type(part).__name__ for part in made) or 'nothing'}"
    if inspect.iscoroutine(made):
        made.close()
    return type(made).__name__


def _example_inputs(name: str, model: nn.Module) -> Any:
    inputs = getattr(model, "example_inputs", None)
    if inputs is None:
        raise TargetError(
            f"{name}: gives a bare {type(model).__name__}, and nothing says what to feed it; "
            "return (model, inputs), or give the model example_inputs"
        )
    if callable(inputs) and not isinstance(inputs, torch.Tensor):
        return _call(name, inputs, f"{name}: example_inputs()")
    return inputs


def _exported(target: Target) -> Inference:
    path = Path(target.place)
    with stdout_to_stderr(), preserved_surroundings(), preserved_rng():
        try:
            with without_log("torch.export"):
                program = torch.export.load(path)
        except Exception as error:
            raise TargetError(
                f"{target.text}: not an exported program that torch {torch.__version__} can load "
                f"({type(error).__name__}: {first_line(error)}); write it by torch.export.save"
            ) from error
        if program.example_inputs is None:
            raise TargetError(
                f"{target.text}: holds no example inputs; export it again with torch.export.save"
            )
        args, kwargs = program.example_inputs
        model = program.module()
    # It was traced in the mode that it has for good, and refuses eval().
    for part in model.modules():
        part.training = False
    return Inference(model, Arguments(tuple(args), dict(kwargs)), name=path.stem)
