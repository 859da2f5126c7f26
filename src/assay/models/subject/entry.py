"""The description of a model: how it is built, its inputs, its weights, and the data that measures its accuracy."""

from __future__ import annotations

import hashlib
import importlib
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
from assay.models.subject.knobs import Knob, Recipe, turned
from assay.settings import did_you_mean

if TYPE_CHECKING:
    import torch

    from assay.models.subject.score import Score

Inputs = tuple[tuple[Any, ...], dict[str, Any]]
"""Arguments of one forward pass, by position and by name: `model(*args, **named)`."""
_LONGEST_NAME = 100
"""Maximum characters for a model's knobs in a file name; longer ones are replaced by their hash."""


@dataclass(frozen=True)
class Entry:
    name: str
    says: str
    module: str
    """Module with `build(**options)` and `example(batch)`; empty: the user's own."""
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Options of `build` with their allowed values; the first is the default."""
    data: str = ""
    """Data set whose test split measures its accuracy; `sentences`: pairs to be matched; empty: none."""
    published: Asset | None = None
    """Published weights."""
    dtypes: tuple[str, ...] = ("fp32", "bf16", "fp16", "fp64")
    knobs: Mapping[str, Knob] = field(default_factory=dict)
    """Parts of its shape that can be changed; `build` takes these, too."""
    recipe: Recipe = field(default_factory=Recipe)
    """How it is trained by default."""
    starts_from: Asset | None = None
    """Published weights of its encoder, from which its training starts."""

    def build(self, seed: int = 0, **options: str) -> torch.nn.Module:
        """Build the model with the initial weights of that seed, in fp32 on the CPU, in eval mode. The same seed and
        version of torch give the same bits, whatever was drawn before."""
        chosen = self.chosen(options)
        with seeded(seed), _missing_package_named(self):
            if not self.module:
                return own.build(self.name, {n: chosen.get(n, k.default) for n, k in self.knobs.items()}).eval()
            built: torch.nn.Module = importlib.import_module(self.module).build(**chosen)
            return built.eval()

    def example(self, batch: int, seed: int = 0, *, device: str = "cpu", dtype: str = "fp32") -> Inputs:
        """Return the inputs of a forward pass over `batch` elements, floating-point ones in `dtype`."""
        from torch.utils import _pytree as pytree

        number = format_called(dtype).torch
        with seeded(seed), _missing_package_named(self):
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
    def guarded(self, doing: str = "running the model on the inputs of `example`") -> Iterator[None]:
        """Turn exceptions in a user's own model into errors that name the line, around code that runs the model."""
        if self.module:
            yield
        else:
            with own.named_in_errors(own.named(self.name), doing):
                yield

    def chosen(self, options: Mapping[str, str]) -> dict[str, str]:
        """Return every option with its value, and every knob that is not at its default. Raise UsageError for an option
        or value that does not exist."""
        for name, value in options.items():
            if name not in self.options and name not in self.knobs:
                names = [*self.options, *(n for n in self.knobs if "." not in n)]
                known = f"it has: {', '.join(names)}" if names else "it has none"
                raise UsageError(f"{self.name} has no option '{name}'", fix=did_you_mean(name, self.knobs) + known)
            if name in self.options and value not in self.options[name]:
                raise UsageError(f"{self.name}: no {name} '{value}'", fix=f"one of: {', '.join(self.options[name])}")
        shape = turned(self.name, self.knobs, {n: v for n, v in options.items() if n in self.knobs})
        return {name: options.get(name, values[0]) for name, values in self.options.items()} | shape

    def unusual(self, options: Mapping[str, str]) -> dict[str, str]:
        """Return the options and knobs that are not at their defaults."""
        chosen = self.chosen(options)
        return {n: v for n, v in chosen.items() if n in self.knobs or v != self.options[n][0]}

    @property
    def file(self) -> Path | None:
        """The model's source file, if it can be found without importing it."""
        home = self.module or self.name.rpartition(":")[0]
        if home.endswith(".py"):
            return Path(home).resolve()
        try:
            spec = importlib.util.find_spec(home)
        except (ModuleNotFoundError, ValueError):
            return None
        return Path(spec.origin) if spec and spec.origin else None

    def weights_file(self, **options: str) -> Path:
        """Return the file to which `assay model train` saves the weights, and where other verbs look for them."""
        unusual = self.unusual(options)
        shape = "-".join(f"{n}-{v}" for n, v in sorted(unusual.items()) if n in self.knobs)
        if len(shape) > _LONGEST_NAME:
            shape = hashlib.sha256(shape.encode()).hexdigest()[:16]
        named = [self.slug, *(v for n, v in unusual.items() if n in self.options), *([shape] if shape else [])]
        return host.data_folder() / "weights" / f"{'-'.join(named)}.safetensors"

    @property
    def slug(self) -> str:
        """The model's name in file names. A user's file gets a hash of its path, since two may share a name."""
        file = None if self.module else own.named(self.name).file
        tail = f"-{hashlib.sha256(str(file).encode()).hexdigest()[:8]}" if file else ""
        return "".join(c if c.isalnum() or c in "-_" else "-" for c in Path(self.name).name) + tail

    def weights_here(self, **options: str) -> Path | None:
        """Return the weights file on this machine, trained here or else published; None if there is none."""
        file = self.weights_file(**options)
        if file.is_file():
            return file
        return self.published.place / "model.safetensors" if self.published and self.published.here() else None

    def load(self, model: torch.nn.Module, file: Path) -> None:
        """Load the weights of a file into the model, all of them or none."""
        rename = getattr(importlib.import_module(self.module), "rename", None) if self.module else None
        if self.published and file.resolve().parent == self.published.place.resolve():
            self.published.read(file.name)  # verifies its hash
        checkpoint.load_into(model, file, rename)

    def start(self, model: torch.nn.Module, file: Path | None = None, tell: Tell = silent) -> None:
        """Load the weights from which training starts: those of `file`, else of `starts_from`. The head on top of the
        encoder keeps its initial weights if the file has none for it."""
        if file is None:
            if self.starts_from is None:
                return
            self.starts_from.ensure(tell)
            file = self.starts_from.place / "model.safetensors"
        home = importlib.import_module(self.module) if self.module else None
        checkpoint.load_into(model, file, getattr(home, "rename", None), getattr(home, "HEAD", ()))

    def score(self, model: torch.nn.Module, *, batch: int = 0, tell: Tell = silent) -> Score | None:
        """Return the model's accuracy on its device and in its dtype, or None if there is no data to measure it on."""
        from assay.models.subject import score

        if not self.data:
            return None
        if self.data == "sentences":
            assert self.published is not None
            self.published.ensure(tell)
            return score.partner_accuracy(model, self.published.place)
        from assay.models.subject.data.datasets import dataset

        (judged,) = dataset(self.data).load("test", tell=tell)
        return score.accuracy(model, judged, batch)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch's generators inside the block; afterwards they continue as before."""
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


@contextmanager
def _missing_package_named(entry: Entry) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as problem:
        if not entry.module:
            raise
        what = f"{entry.name} needs {problem.name}, which is not installed"
        raise Lacking(what, fix="pip install 'kernel-assay[models]'") from None
