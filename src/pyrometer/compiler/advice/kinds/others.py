"""Words for further breaks, whose rewrite depends on more than the code around them."""

from __future__ import annotations

from pyrometer.advice import Advice, FixClass
from pyrometer.compiler.advice.registry import advises
from pyrometer.compiler.advice.site import Site

_GRADIENT: tuple[str, str, FixClass] = (
    "set requires_grad outside",
    "Whether a tensor needs gradients is a property of the graph's inputs. Set it before the compiled function is called.",
    "semantic",
)
_SPARSE: tuple[str, str, FixClass] = (
    "use dense tensors, or stay eager",
    (
        "torch.compile has no sparse tensors. Compute with a dense tensor and a mask, or keep the sparse part outside under "
        "torch.compiler.disable."
    ),
    "tolerance",
)
_GENERATOR: tuple[str, str, FixClass] = (
    "return a list",
    "A generator's frame is left and entered again, which a graph cannot do. Collect the values in a list: `[f(x) for x in xs]`.",
    "exact",
)
_STATE: tuple[str, str, FixClass] = (
    "return it instead of storing it",
    (
        "torch cannot replay this assignment behind the graph. Return the new value and let the caller store it, or copy into a buffer "
        "of the module with `copy_`."
    ),
    "exact",
)
_TEXT: tuple[str, str, FixClass] = (
    "make text outside",
    "Text made from a tensor needs its values. Return the tensor and make the text from it after the compiled function.",
    "exact",
)
_RESIZE: tuple[str, str, FixClass] = (
    "make a new tensor",
    "A graph does not resize memory. Use a slice, `torch.nn.functional.pad` or a new tensor.",
    "semantic",
)
_ERROR: tuple[str, str, FixClass] = (
    "handle the error outside",
    (
        "An exception left the function while it was traced. If it is meant, catch it around the call of the compiled function; if "
        "eager runs do not raise it, something that is done with a tensor here cannot be traced."
    ),
    "exact",
)

WORDS: dict[str, tuple[str, str, FixClass]] = {
    **dict.fromkeys(("gb0125", "gb0206", "gb8985", "gb7324"), _GRADIENT),
    **dict.fromkeys(("gb0015", "gb0277", "gb0374", "gb0129", "gb0130"), _SPARSE),
    **dict.fromkeys(("gb0003", "gb0253", "gb8335", "gb2549", "gb0120"), _GENERATOR),
    **dict.fromkeys(
        ("gb0096", "gb0056", "gb0058", "gb0169", "gb0254", "gb0189", "gb0271", "gb0467", "gb0131"), _STATE
    ),
    **dict.fromkeys(("gb0005", "gb0569", "gb9198", "gb7968"), _TEXT),
    **dict.fromkeys(("gb0126", "gb0127", "gb0128"), _RESIZE),
    **dict.fromkeys(("gb0088", "gb0111"), _ERROR),
    "gb0207": (
        "sort with torch",
        "Python compares elements one by one, which needs their values. Stack them and use torch.sort or torch.argsort.",
        "exact",
    ),
    "gb0039": (
        "compile fewer variants",
        (
            "The function was compiled as often as torch allows, and runs eagerly for what fits none of these. Mark sizes that vary with "
            "torch._dynamo.mark_dynamic, and keep counters and other numbers that change out of the function."
        ),
        "exact",
    ),
    "gb0219": (
        "look at the backend's error",
        (
            "The backend failed on this graph, and it runs eagerly. Its own message says what it cannot do; with another backend "
            "such as aot_eager the rest stays in a graph."
        ),
        "exact",
    ),
    "gb0031": (
        "do without __getattribute__",
        "torch cannot look attributes up through code of the module's own. Use plain attributes, or `__getattr__` for missing ones.",
        "exact",
    ),
}
"""By id: title, reason, and what may change in the results."""


@advises(*WORDS)
def in_words(site: Site) -> list[Advice]:
    """What to do, in words."""
    title, why, fix_class = WORDS[str(site.found.id)]
    return [Advice(slug=str(site.found.id), title=title, why=why, fix_class=fix_class)]


@advises("gb0059")
def text_of_tensor(site: Site) -> list[Advice]:
    """`str(x)` and its like."""
    title, why, fix_class = _TEXT
    made = any(f"`{name}`" in site.found.explanation for name in ("str", "repr", "format", "ascii"))
    return [Advice(slug="text-of-tensor", title=title, why=why, fix_class=fix_class)] if made else []
