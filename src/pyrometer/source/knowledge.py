"""Names by which the kinds of objects are told: classes, annotations, and what programmers call things."""

from __future__ import annotations

import re

from pyrometer.source.torch_names import MODULE_ROOTS
from pyrometer.source.value import CONTAINER, HOST, LEAF, TENSOR, UNKNOWN, Kind, Value
from pyrometer.source.words import words

TORCH_PACKAGES = words(
    "torch torchvision torchaudio torchtext torchdata lightning pytorch_lightning transformers timm accelerate"
    " torch_geometric diffusers ignite torchmetrics peft trl deepspeed fairscale monai fastai kornia"
)
"""Whoever imports one of these works with tensors of torch."""

MODULE_BASES = words("""
    torch.nn.Module torch.nn.modules.module.Module torch.nn.modules.Module torch.jit.ScriptModule
    lightning.LightningModule lightning.pytorch.LightningModule pytorch_lightning.LightningModule
    transformers.PreTrainedModel transformers.modeling_utils.PreTrainedModel torch.nn.Sequential torch.nn.ModuleList
    """)

LOADERS = words("""
    torch.utils.data.DataLoader torch.utils.data.dataloader.DataLoader torch_geometric.loader.DataLoader
    torchdata.stateful_dataloader.StatefulDataLoader torch_geometric.loader.NeighborLoader monai.data.DataLoader
    """)
DATASET_BASES = words("""
    torch.utils.data.Dataset torch.utils.data.IterableDataset torch.utils.data.TensorDataset torch.utils.data.Subset
    torch.utils.data.ConcatDataset torch.utils.data.dataset.Dataset torchvision.datasets.ImageFolder
    """)
SCALERS = frozenset(
    ["torch.cuda.amp.GradScaler", "torch.amp.GradScaler", "torch.cuda.amp.grad_scaler.GradScaler"]
)
NO_GRAD = frozenset(["torch.no_grad", "torch.autograd.no_grad", "torch.autograd.grad_mode.no_grad"])
INFERENCE = frozenset(
    ["torch.inference_mode", "torch.autograd.inference_mode", "torch.autograd.grad_mode.inference_mode"]
)

PARAMETERS = frozenset(["torch.nn.Parameter", "torch.nn.parameter.Parameter"])
KNOWN_CLASSES = {Kind.LOADER: LOADERS, Kind.DATASET: DATASET_BASES, Kind.SCALER: SCALERS}
NO_OPTIMIZERS = re.compile("sched|swa")
"""Packages of torch.optim that hold something else."""

NO_MODULES = ("torch.nn.utils.", "torch.nn.init.", "torch.nn.attention.", "torch.nn.parameter.")
PRETRAINED = re.compile("Model|For[A-Z]|Transformer|UNet|Autoencoder|CLIP")
"""Classes of transformers and diffusers whose pretrained instances are modules; tokenizers and configs are none."""

LOADER_NAME = re.compile(
    r"(^|_)(data)?_?loader$|(^|_)dl$|^dataloaders?$|(^|_)prefetcher$|dataloader$", re.IGNORECASE
)
"""`train_loader`, `val_dl`, `dataloader`: what loaders are called."""

ENDS_IN_DL = re.compile(r"dl\b")

TEXT_NAME = re.compile(
    r"(^|_)(path|file|filename|name|text|caption|sentence|meta|metadata|info|uri|url|question|answer|prompt|word|doc|tag|"
    r"string|raw|key|uid)s?$",
    re.IGNORECASE,
)
"""What parts of a batch that are no tensors are called."""

MODEL_NAME = re.compile(r"^(.*_)?(model|net|network)$", re.IGNORECASE)
LOSS_NAME = re.compile(r"^(.*_)?(criterion|loss_fn|loss_func|loss_function)$", re.IGNORECASE)
"""What models and losses are called where nothing else says what they are."""

ANNOTATIONS: dict[str, Value] = {
    "torch.Tensor": TENSOR,
    "torch.FloatTensor": TENSOR,
    "torch.LongTensor": TENSOR,
    "torch.IntTensor": TENSOR,
    "torch.BoolTensor": TENSOR,
    "torch.cuda.FloatTensor": TENSOR,
    **dict.fromkeys(PARAMETERS, LEAF),
    "torch.Size": HOST,
    "torch.device": HOST,
    "torch.dtype": HOST,
    "numpy.ndarray": Value(Kind.ARRAY),
    "int": HOST,
    "float": HOST,
    "bool": HOST,
    "str": HOST,
    "bytes": HOST,
    "complex": HOST,
    "list": CONTAINER,
    "dict": CONTAINER,
    "set": CONTAINER,
    "collections.deque": CONTAINER,
    "typing.List": CONTAINER,
    "typing.Dict": CONTAINER,
    **{name: Value(Kind.LOADER, of=name) for name in LOADERS},
    **{name: Value(Kind.DATASET, of=name) for name in DATASET_BASES},
    **{name: Value(Kind.SCALER, of=name) for name in SCALERS},
    **{name: Value(Kind.MODULE, of=name) for name in MODULE_BASES},
}
HOLDERS = words("""
    list tuple dict set typing.List typing.Tuple typing.Dict typing.Sequence typing.Iterable typing.Mapping
    collections.abc.Sequence collections.abc.Iterable collections.abc.Mapping typing.Iterator collections.abc.Iterator
    """)
"""Generic types that hold what their arguments say."""


def may_name_loaders(text: str) -> bool:
    """Whether a file may name a loader, or a class of them; where it does not, no value in it is a loader.

    >>> may_name_loaders("for batch in val_dl:"), may_name_loaders("for row in table:")
    (True, False)
    """
    lower = text.lower()
    return "loader" in lower or "prefetcher" in lower or ENDS_IN_DL.search(lower) is not None


def instance_of(dotted: str) -> Value:
    """What calling a class of this dotted name makes; UNKNOWN for names without knowledge.

    >>> instance_of("torch.optim.AdamW").kind
    <Kind.OPTIMIZER: 'optimizer'>
    """
    if dotted in PARAMETERS:
        return LEAF
    kind = next((kind for kind, names in KNOWN_CLASSES.items() if dotted in names), None) or kind_at_home(
        dotted
    )
    return UNKNOWN if kind is None else Value(kind, of=dotted)


def kind_at_home(dotted: str) -> Kind | None:
    """The kind of a class by the package that it is at home in."""
    home, _, last = dotted.rpartition(".")
    is_class = last[:1].isupper()
    if home.startswith("torchvision.datasets") and is_class:
        return Kind.DATASET
    if is_class and (
        home == "torch.optim" or (home.startswith("torch.optim.") and not NO_OPTIMIZERS.search(home))
    ):
        return Kind.OPTIMIZER
    if is_class and f"{home}.".startswith(MODULE_ROOTS) and not f"{home}.".startswith(NO_MODULES):
        return Kind.MODULE
    if home.startswith("torchvision.models") and last[:1].islower():
        return Kind.MODULE
    pretrained = (
        last in {"from_pretrained", "from_config"} and PRETRAINED.search(home.rpartition(".")[2]) is not None
    )
    return Kind.MODULE if pretrained else None
