"""The models Assay knows: how each is built, what goes in, and what its accuracy is measured on.

Names of Assay's own, or any `module:function` or `path/file.py:function` of the user's that returns an `nn.Module`."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay import host
from assay.dtype import dtype as format_called
from assay.errors import Lacking, UsageError
from assay.models.subject import checkpoint, own
from assay.models.subject.data.asset import Asset, Tell, silent
from assay.models.subject.data.minilm import MINILM

if TYPE_CHECKING:
    import torch

    from assay.models.subject.score import Score

Inputs = tuple[tuple[Any, ...], dict[str, Any]]
"""Arguments of one forward pass, by position and by name: `model(*args, **named)`."""


@dataclass(frozen=True)
class Entry:
    name: str
    says: str
    module: str
    """Has `build(**options)` and `example(batch)`; empty: the user's own."""
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What `build` takes, with the values allowed; the first is the default."""
    data: str = ""
    """The data set whose test split its accuracy is measured on; `sentences`: pairs to be matched; empty: nothing."""
    published: Asset | None = None
    """Weights that somebody trained and published."""
    dtypes: tuple[str, ...] = ("fp32", "bf16", "fp16", "fp64")

    def build(self, seed: int = 0, **options: str) -> torch.nn.Module:
        """The model with the initial weights of that seed, in fp32 on the CPU, in eval mode. The same seed and torch
        give the same bits, whatever was drawn before."""
        chosen = self.chosen(options)
        with seeded(seed), _reached(self):
            if not self.module:
                return own.build(self.name).eval()
            built: torch.nn.Module = importlib.import_module(self.module).build(**chosen)
            return built.eval()

    def example(self, batch: int, seed: int = 0, *, device: str = "cpu", dtype: str = "fp32") -> Inputs:
        """Inputs of one forward pass over `batch` elements; floating ones in `dtype`."""
        from torch.utils import _pytree as pytree

        number = format_called(dtype).torch
        with seeded(seed), _reached(self):
            if self.module:
                made = importlib.import_module(self.module).example(batch)
            else:
                made = own.example(self.name, batch)

        def one(leaf: Any) -> Any:
            if not hasattr(leaf, "is_floating_point"):
                return leaf
            return leaf.to(device, number if leaf.is_floating_point() else leaf.dtype)

        cast = pytree.tree_map(one, made)
        if isinstance(cast, Mapping):
            return (), dict(cast)
        return (tuple(cast) if isinstance(cast, tuple | list) else (cast,)), {}

    def forward(self, model: torch.nn.Module, inputs: Inputs) -> Any:
        args, named = inputs
        return model(*args, **named)

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Around whatever runs the model: an exception in a user's own becomes an error that names the line."""
        if self.module:
            yield
        else:
            with own.told(own.named(self.name)):
                yield

    def chosen(self, options: Mapping[str, str]) -> dict[str, str]:
        """Every option with its value; UsageError for one that does not exist."""
        for name, value in options.items():
            if name not in self.options:
                known = f"it has: {', '.join(self.options)}" if self.options else "it has none"
                raise UsageError(f"{self.name} has no option '{name}'", fix=known)
            if value not in self.options[name]:
                raise UsageError(f"{self.name}: no {name} '{value}'", fix=f"one of: {', '.join(self.options[name])}")
        return {name: options.get(name, values[0]) for name, values in self.options.items()}

    @property
    def file(self) -> Path | None:
        """That it is written in, as far as that can be known without importing it."""
        home = self.module or self.name.rpartition(":")[0]
        if home.endswith(".py"):
            return Path(home).resolve()
        try:
            spec = importlib.util.find_spec(home)
        except (ModuleNotFoundError, ValueError):
            return None
        return Path(spec.origin) if spec and spec.origin else None

    def weights_file(self, **options: str) -> Path:
        """Where `assay model train` puts this model's weights, and where others look for them."""
        chosen = self.chosen(options)
        named = [self.slug, *(v for k, v in chosen.items() if v != self.options[k][0])]
        return host.data_folder() / "weights" / f"{'-'.join(named)}.safetensors"

    @property
    def slug(self) -> str:
        """Its name as a file's. Two files of users may share a name: theirs holds a hash of the path."""
        file = None if self.module else own.named(self.name).file
        tail = f"-{hashlib.sha256(str(file).encode()).hexdigest()[:8]}" if file else ""
        return "".join(c if c.isalnum() or c in "-_" else "-" for c in Path(self.name).name) + tail

    def weights_here(self, **options: str) -> Path | None:
        """The weights on this machine: trained here, else published; None where there are only random ones."""
        file = self.weights_file(**options)
        if file.is_file():
            return file
        return self.published.place / "model.safetensors" if self.published and self.published.here() else None

    def load(self, model: torch.nn.Module, file: Path) -> None:
        """Put the weights of a file into the model, all of them or none."""
        rename = getattr(importlib.import_module(self.module), "rename", None) if self.module else None
        if self.published and file.resolve().parent == self.published.place.resolve():
            self.published.read(file.name)  # for its hash
        checkpoint.load_into(model, file, rename)

    def score(self, model: torch.nn.Module, *, batch: int = 500, tell: Tell = silent) -> Score | None:
        """Its accuracy, on the device and in the dtype the model is in; None where there is nothing to measure on."""
        from assay.models.subject import score

        if not self.data:
            return None
        if self.data == "sentences":
            assert self.published is not None
            self.published.ensure(tell)
            return score.partners_found(model, self.published.place)
        from assay.models.subject.data.digits import load

        return score.accuracy(model, load(self.data, "test", tell), batch)


ENTRIES: Mapping[str, Entry] = {
    e.name: e
    for e in (
        Entry(
            "mnist-cnn",
            "two convolutions, two linears, an activation of choice",
            "assay.models.subject.zoo.mnist_cnn",
            {"activation": ("gelu", "relu", "silu")},
            "mnist",
        ),
        Entry(
            "mnist-cnn-ln",
            "mnist-cnn with LayerNorm and GELU for its activation",
            "assay.models.subject.zoo.mnist_cnn_ln",
            data="mnist",
        ),
        Entry("resnet18", "ResNet-18, with torchvision's names of weights", "assay.models.subject.zoo.resnet18"),
        Entry(
            "minilm",
            "all-MiniLM-L6-v2, a 6-layer encoder of sentences",
            "assay.models.subject.zoo.minilm",
            {"attention": ("sdpa", "eager")},
            "sentences",
            MINILM,
        ),
    )
}


def entry(name: str) -> Entry:
    """The model called `name`. A user's own is not loaded before it is built."""
    if name in ENTRIES:
        return ENTRIES[name]
    if ":" in name:
        own.named(name)
        return Entry(name, "the user's own", "")
    raise UsageError(
        f"no model called '{name}'",
        fix=f"there are: {', '.join(ENTRIES)}; or yours: module:function, path/file.py:function",
    )


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """torch's generators from this seed on; afterwards as they were."""
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


@contextmanager
def _reached(found: Entry) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as problem:
        if not found.module:
            raise
        what = f"{found.name} needs {problem.name}, which is not installed"
        raise Lacking(what, fix="pip install 'kernel-assay[models]'") from None
