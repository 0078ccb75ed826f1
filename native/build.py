"""Compile `pyrometer._native` with the C compiler that Python itself was built with, or `$CC`.

    python native/build.py [TARGET] [--sanitize]

TARGET is the file to write, by default where an editable install finds it. Nothing but a compiler and Python's own headers is
needed. Python's stable ABI is used, so that one file serves every Python from 3.11 on.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

HERE = Path(__file__).parent
NAME = "_native.abi3.so"
STABLE_ABI = "-DPy_LIMITED_API=0x030B0000"
WARNINGS = ("-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Wno-cast-function-type")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")


def interface() -> int:
    """The number that says what functions the module has; both sides must name the same."""
    text = (HERE.parent / "src" / "pyrometer" / "native.py").read_text(encoding="utf-8")
    match = re.search(r"^INTERFACE = (\d+)$", text, re.MULTILINE)
    assert match
    return int(match[1])


def command(target: Path, *, sanitize: bool = False) -> list[str]:
    """The compiler's command line."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    shared = ["-bundle", "-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-shared"]
    how = ["-O1", "-g", *SANITIZERS] if sanitize else ["-O3"]
    sources = sorted(str(path) for path in HERE.glob("*.c"))
    include = f"-I{sysconfig.get_path('include')}"
    return [
        *compiler,
        *shared,
        *how,
        "-std=c11",
        "-fPIC",
        *WARNINGS,
        STABLE_ABI,
        f"-DINTERFACE={interface()}",
        include,
        *sources,
        "-o",
        str(target),
    ]


def build(target: Path, *, sanitize: bool = False) -> str:
    """Compile to a file, which is replaced at once; gives what kept it from being made, or nothing."""
    beside = target.with_name(f".{os.getpid()}-{target.name}")
    try:
        done = subprocess.run(command(beside, sanitize=sanitize), capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stderr.strip() or f"the compiler ended with {done.returncode}"
        beside.replace(target)
    except OSError as error:
        return f"{error.filename or 'the compiler'}: {error.strerror}"
    finally:
        beside.unlink(missing_ok=True)
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", type=Path, nargs="?", default=HERE.parent / "src" / "pyrometer" / NAME)
    parser.add_argument("--sanitize", action="store_true", help="check every access, for tests")
    options = parser.parse_args()
    trouble = build(options.target.absolute(), sanitize=options.sanitize)
    print(f"not compiled: {trouble}" if trouble else f"compiled {options.target}", file=sys.stderr)
    return 1 if trouble else 0


if __name__ == "__main__":
    sys.exit(main())
