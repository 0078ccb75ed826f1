"""What can go wrong, as a tree; each error knows the exit code of the command line.

::

    PyrometerError                 2   our own failure, or one not named below
    ├── UsageError                 2   wrong flags, or flags that do not go together
    ├── InputError                 2   a file, target or argument that cannot be used
    │   ├── TargetError            2   a TARGET that does not lead to a workload
    │   └── NotApplicableError     2   a lever whose preconditions do not hold
    ├── IncomparableError          2   a comparison across machines or settings, refused
    ├── StoreError                 2   the store cannot be read or written
    ├── BudgetExceededError        1   more than was allowed; an AssertionError too, so that tests fail by it
    ├── ContractError              1   a contract of a test that is broken, or cannot be judged; an AssertionError, too
    └── UserProgramError           4   the user's own model, factory or script failed

Only the command line's `main` prints; libraries raise. A message says what happened, the value, what is legal
and what to do next, in one line:

>>> raise InputError("batch: got 0; a batch needs at least 1; pass --matrix batch=1,4,8")
Traceback (most recent call last):
pyrometer.errors.InputError: batch: got 0; a batch needs at least 1; pass --matrix batch=1,4,8
"""

from __future__ import annotations

import enum


class ExitCode(enum.IntEnum):
    """Exit status of every verb."""

    OK = 0
    FOUND = 1
    FAILURE = 2
    UNDECIDED = 3
    USER_PROGRAM = 4


class PyrometerError(Exception):
    """Base of everything that Pyrometer raises on purpose."""

    exit_code: ExitCode = ExitCode.FAILURE


class UsageError(PyrometerError):
    """The command line or a call was put together wrongly."""


class InputError(PyrometerError):
    """Something given to us cannot be used."""


class TargetError(InputError):
    """A TARGET does not lead to a workload."""


class NotApplicableError(InputError):
    """A lever cannot be applied to this workload, or a package that it needs is missing."""


class IncomparableError(PyrometerError):
    """Two results that were not taken under the same conditions."""


class StoreError(PyrometerError):
    """The store cannot be opened, read or written."""


class BudgetExceededError(PyrometerError, AssertionError):
    """A result is over the limits that were set for it."""

    exit_code = ExitCode.FOUND


class ContractError(PyrometerError, AssertionError):
    """A contract of a test-suite is broken, undecided, or its workload did not run."""

    exit_code = ExitCode.FOUND


class UserProgramError(PyrometerError):
    """The user's own code raised; the original exception is the `__cause__`."""

    exit_code = ExitCode.USER_PROGRAM
