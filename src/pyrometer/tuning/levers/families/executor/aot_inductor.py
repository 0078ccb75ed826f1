"""`aot_inductor`: the exported model, compiled ahead of time by Inductor into a package."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import torch

from pyrometer.hardware.cpu import read_cpu
from pyrometer.tuning.levers.lever import Parameters, lever
from pyrometer.tuning.levers.private import inductor_patch, missing_compiler
from pyrometer.tuning.levers.runtimes.exported import ExportedRuntime
from pyrometer.tuning.levers.runtimes.exporting import Exported, library
from pyrometer.tuning.levers.runtimes.form import Run, runtime_of
from pyrometer.tuning.levers.subject import Subject


@lever
class AotInductor(ExportedRuntime):
    """Compile the exported model into a package that runs without Dynamo and its guards."""

    name = "aot_inductor"
    title = "compile the model ahead of time into a package"
    why = (
        "What Inductor generates, without compiling in each new process and without guards in each call. Compiling takes a "
        "minute once; the package fits this version of torch and this kind of CPU."
    )
    contiguous = False
    prior = 0.75
    minutes = 2.0

    def refuses(self, subject: Subject) -> str | None:
        """Models that torch can export, where Inductor can compile."""
        return super().refuses(subject) or missing_compiler(subject.device)

    def choices(self, subject: Subject) -> list[Parameters]:
        """On a CPU with frozen parameters first."""
        return [{"freezing": True}, {}] if subject.device.type == "cpu" else [{}]

    def made_with(self) -> str:
        """The generated code fits a version of torch and a kind of CPU."""
        return f"torch {torch.__version__}, {read_cpu().model}"

    def write(self, exported: Exported, folder: Path, parameters: Parameters) -> list[Path]:
        """Compile into a package."""
        import torch._inductor

        path = folder / "model.pt2"
        setting = inductor_patch(freezing=True) if parameters.get("freezing") else contextlib.nullcontext()
        with library("AOTInductor"), torch.no_grad(), setting:
            torch._inductor.aoti_compile_and_package(exported.program, package_path=str(path))  # noqa: SLF001 - as documented
        return [path]

    def opened(self, path: Path) -> tuple[Run, Any]:
        """Past the parsing of arguments, which are flat already."""
        import torch._inductor

        with library("AOTInductor"):
            package: Any = torch._inductor.aoti_load_package(str(path))  # noqa: SLF001 - as documented
        return package.loader.boxed_run, package

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """The package is what runs; with freezing, its constants are those that freezing makes."""
        package = runtime_of(subject.model)
        if package is None:
            return "no package has been loaded"
        frozen = [name for name in package.get_constant_fqns() if "_frozen_param" in name]
        if parameters.get("freezing") and not frozen:
            return "no parameter was frozen into the package"
        return None

    def lines(self, parameters: Parameters) -> list[str]:
        """Export, compile and load."""
        frozen = ["torch._inductor.config.freezing = True"] if parameters.get("freezing") else []
        return [
            *frozen,
            "with torch.no_grad():",
            "    exported = torch.export.export(model, inputs)",
            "    path = torch._inductor.aoti_compile_and_package(exported)",
            "model = torch._inductor.aoti_load_package(path)",
        ]
