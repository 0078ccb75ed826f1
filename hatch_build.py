"""Building: the compiled module goes along where a compiler is, and is left out where there is none."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NAME = "_native.abi3.so"


class CompiledModule(BuildHookInterface):
    """Compiles `native/*.c`, for an editable install beside the package, for a wheel into it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and tell the wheel what it holds; without a compiler it is one for any platform."""
        if self.target_name != "wheel":
            return  # an sdist is for any platform
        root = Path(self.root)
        self.scratch = (
            tempfile.TemporaryDirectory()
        )  # is needed until the wheel is packed; the tree may be read-only
        folder = root / "src" / "pyrometer" if version == "editable" else Path(self.scratch.name)
        done = subprocess.run([sys.executable, root / "native" / "build.py", folder / NAME], check=False)
        if done.returncode:
            self.app.display_warning(
                "pyrometer is installed without its compiled module: reading traces takes several times longer"
            )
        elif version != "editable":
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["force_include"][str(folder / NAME)] = f"pyrometer/{NAME}"
            build_data["pure_python"] = False
            build_data["tag"] = f"cp311-abi3-{platform}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002  # as called
        """Remove what was compiled; the wheel has it."""
        if self.target_name == "wheel":
            self.scratch.cleanup()
