"""How all of our templates are filled: text is escaped, control characters can be seen, a name that is missing is an error."""

from __future__ import annotations

from importlib.resources import files

import jinja2

from pyrometer.report.visible import for_template
from pyrometer.text import with_capital


def environment(package: str) -> jinja2.Environment:
    """An environment for the templates of a package, which lie in its folder `templates`."""

    def load(name: str) -> str:
        return files(package).joinpath(f"templates/{name}").read_text(encoding="utf-8")

    filled = jinja2.Environment(
        loader=jinja2.FunctionLoader(load),
        autoescape=True,
        finalize=for_template,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filled.filters["with_capital"] = with_capital
    return filled
