import warnings


def outer():
    inner()


def inner():
    for level in (1, 2, 3, 4, 9):
        warnings.warn(f"level {level}", stacklevel=level)


outer()
import no_such_module
