"""`profile_script`: run a script as it is, and say what its memory is for and whether it stays."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

import msgspec

from pyrometer.errors import InputError
from pyrometer.memory.category import CATEGORIES
from pyrometer.memory.profile import MemoryProfile, ProcessLevels, WholeRun
from pyrometer.memory.scripts.findings import STEPS, FollowSettings, ScriptFindings
from pyrometer.record import from_json, to_dict
from pyrometer.workload.script.observe import observe
from pyrometer.workload.script.observed import FollowRequest, ObservedScript

INTERRUPTED = 130


class ScriptMemory(NamedTuple):
    """A script that has run: its memory, how it ended, and what was seen of its steps."""

    profile: MemoryProfile
    exit_code: int
    """The script's own; 128 and the number of the signal that ended it; 130 when it was interrupted."""
    observed: ObservedScript


def profile_script(argv: list[str], *, leak_steps: int | None = None) -> ScriptMemory:
    """Run a script unchanged in a Python of its own, and profile its memory.

    Its output, results, exit code and exceptions are its own. Every operator of the first two steps is recorded, in which they
    take up to four times as long; then every operator of sixty steps is looked at for memory that stays, and from there on that
    of windows so far apart that they cost 3 %. A step is what `observe` takes for one. Where `torch.compile` is used, the
    allocator's account is taken instead: lines are not known, and no compiled code runs otherwise than without us. The peak of
    all steps is read from the allocator wherever something of a step begins or ends, in a few microseconds: `whole_run`.

    Where memory stays is asked while steps run; what only the last third of a script does may be missed.

    Args:
        argv: the script and its arguments.
        leak_steps: watch just so many steps for memory that stays, all of them closely; 0 watches none.

    Raises:
        TargetError: the script is missing, not a file, or not Python source text.
        InputError: `leak_steps` is negative.
    """
    if leak_steps is not None and leak_steps < 0:
        raise InputError(f"leak_steps: got {leak_steps}; 0 watches none, and 60 are a good choice")
    with tempfile.TemporaryDirectory(prefix="pyrometer-") as folder:
        findings, failure = Path(folder) / "memory.json", Path(folder) / "failure"
        settings = FollowSettings(path=str(findings), name=_name(argv), leak_steps=leak_steps)
        request = FollowRequest(
            module="pyrometer.memory.scripts.follower",
            name="follow",
            settings=to_dict(settings),
            failure=str(failure),
        )
        observed = observe(argv, follow_request=request)
        notes = [f"memory was not followed: {failure.read_text()}"] if failure.exists() else []
        found = from_json(ScriptFindings, findings.read_bytes()) if findings.exists() else ScriptFindings()
    return ScriptMemory(_complete(found, observed, notes), _exit_code(observed), observed)


def _name(argv: list[str]) -> str:
    return Path(argv[0]).name if argv else ""


def _complete(found: ScriptFindings, observed: ObservedScript, notes: list[str]) -> MemoryProfile:
    """The profile with what is only known outside; an empty one where nothing was recorded."""
    profile = found.profile
    if profile is None:
        notes = [*notes, *found.notes, "no memory was recorded: the script ended before its first steps did"]
        profile = MemoryProfile(
            name=_name(observed.argv),
            device="cpu",
            source="nothing",
            peak_bytes=0,
            ledger_bytes=dict.fromkeys(CATEGORIES, 0),
        )
    return msgspec.structs.replace(
        profile,
        whole_run=profile.whole_run or _whole_run_on_device(profile, observed),
        levels=_levels(profile.levels, observed),
        notes=[*profile.notes, *notes, *observed.notes],
    )


def _whole_run_on_device(profile: MemoryProfile, observed: ObservedScript) -> WholeRun | None:
    """On CUDA torch's allocator counts the peak itself."""
    peak = observed.allocated_peak_bytes
    if profile.device != "cuda" or not peak or len(observed.step_ns) <= STEPS:
        return None
    return WholeRun(
        peak_bytes=max(peak, profile.peak_bytes),
        num_steps=len(observed.step_ns),
        recorded_steps=STEPS,
        resolution_bytes=0,
        source="the peak that torch's allocator counts",
    )


def _levels(levels: ProcessLevels, observed: ObservedScript) -> ProcessLevels:
    """With the peaks of the whole run."""
    return msgspec.structs.replace(
        levels,
        rss_peak_bytes=observed.peak_bytes or levels.rss_peak_bytes,
        allocated_peak_bytes=observed.allocated_peak_bytes or levels.allocated_peak_bytes,
    )


def _exit_code(observed: ObservedScript) -> int:
    code = INTERRUPTED if observed.interrupted else observed.exit_code
    return code if code >= 0 else 128 - code
