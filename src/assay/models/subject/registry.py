"""The models Assay knows: how each is built, what goes in, and what its accuracy is measured on.

Names of Assay's own, or any `module:function` or `path/file.py:function` of the user's that returns an `nn.Module`."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay import host, provenance
from assay.dtype import dtype as format_called
from assay.errors import AssayError, Lacking, SourceError, UsageError
from assay.models.subject import checkpoint
from assay.models.subject.data.asset import Asset, Tell, silent
from assay.models.subject.data.published import MINILM
from assay.models.subject.knobs import Knob, Recipe, turned
from assay.settings import did_you_mean
from assay.worker.load import module as imported

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    knobs: Mapping[str, Knob] = field(default_factory=dict)
    """What of its shape may be changed; `build` takes these too."""
    recipe: Recipe = field(default_factory=Recipe)
    """How it is trained unless somebody asks otherwise."""
    starts_from: Asset | None = None
    """Published weights of its encoder, with which its training begins."""

    def build(self, seed: int = 0, **options: str) -> torch.nn.Module:
        """The model with the initial weights of that seed, in fp32 on the CPU, in eval mode. The same seed and torch
        give the same bits, whatever was drawn before."""
        chosen = self.chosen(options)
        with seeded(seed), _missing_package_named(self):
            if not self.module:
                return _build_own(self.name, {n: chosen.get(n, k.default) for n, k in self.knobs.items()}).eval()
            built: torch.nn.Module = importlib.import_module(self.module).build(**chosen)
            return built.eval()

    def example(self, batch: int, seed: int = 0, *, device: str = "cpu", dtype: str = "fp32") -> Inputs:
        """Inputs of one forward pass over `batch` elements; floating ones in `dtype`."""
        from torch.utils import _pytree as pytree

        number = format_called(dtype).torch
        with seeded(seed), _missing_package_named(self):
            if self.module:
                made = importlib.import_module(self.module).example(batch)
            else:
                made = _example_own(self.name, batch)

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
            with _named_in_errors(named(self.name), "running the model on the inputs of `example`"):
                yield

    def chosen(self, options: Mapping[str, str]) -> dict[str, str]:
        """Every option with its value, and every knob that is not at its default; UsageError for one that does not
        exist."""
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
        """Those options and knobs that are not at their defaults."""
        chosen = self.chosen(options)
        return {n: v for n, v in chosen.items() if n in self.knobs or v != self.options[n][0]}

    @property
    def file(self) -> Path | None:
        """The file it is written in, where that is known without importing it."""
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
        unusual = self.unusual(options)
        shape = "-".join(f"{n}-{v}" for n, v in sorted(unusual.items()) if n in self.knobs)
        if len(shape) > _LONGEST_NAME:
            shape = hashlib.sha256(shape.encode()).hexdigest()[:16]
        named = [self.slug, *(v for n, v in unusual.items() if n in self.options), *([shape] if shape else [])]
        return host.data_folder() / "weights" / f"{'-'.join(named)}.safetensors"

    @property
    def slug(self) -> str:
        """The name as part of a file name. Two files of users may share a name, so theirs end in a hash of the path."""
        file = None if self.module else named(self.name).file
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

    def start(self, model: torch.nn.Module, file: Path | None = None, tell: Tell = silent) -> None:
        """Before training: put the weights of that file, else those it starts from, into the model. What stands on top
        of the encoder keeps its initial weights where the file has none for it."""
        if file is None:
            if self.starts_from is None:
                return
            self.starts_from.ensure(tell)
            file = self.starts_from.place / "model.safetensors"
        home = importlib.import_module(self.module) if self.module else None
        checkpoint.load_into(model, file, getattr(home, "rename", None), getattr(home, "HEAD", ()))

    def score(self, model: torch.nn.Module, *, batch: int = 0, tell: Tell = silent) -> Score | None:
        """Its accuracy, on the device and in the dtype the model is in; None where there is nothing to measure on."""
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


_LONGEST_NAME = 100
"""Characters of a file's name for the knobs of a model; longer ones are named by their hash."""
_DEPTHS = ("1", "2", "4", "8")
_SQUARE = ("query", "key", "value", "project")
"""Linears of a layer that an identity can stand for, whatever the width."""
_BERT_KNOBS = {
    "depth": Knob(_DEPTHS, "2"),
    "width": Knob(("64", "128", "192", "256", "384", "512"), "128"),
    "heads": Knob(("1", "2", "4", "8", "16"), "2"),
    "feed_forward": Knob(("256", "512", "768", "1024", "1536", "2048"), "512"),
    **{
        f"layers.{layer}.{linear}": Knob(
            ("identity", "linear"), "linear", {"depth": tuple(d for d in _DEPTHS if int(d) > layer)}
        )
        for layer in range(int(_DEPTHS[-1]))
        for linear in _SQUARE
    },
}

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
        Entry(
            "bert-tiny",
            "BERT of 2 layers, 128 wide, with 2 classes on top",
            "assay.models.subject.zoo.bert_tiny",
            {"attention": ("sdpa", "eager"), "pooling": ("mean", "first")},
            "imdb",
            knobs=_BERT_KNOBS,
            recipe=Recipe(batch=32, lr=5e-4),
        ),
        Entry(
            "minilm-imdb",
            "MiniLM's encoder with 2 classes on top",
            "assay.models.subject.zoo.minilm_imdb",
            {"attention": ("sdpa", "eager")},
            "imdb",
            recipe=Recipe(epochs=3, batch=32, lr=5e-5),
            starts_from=MINILM,
        ),
    )
}


def entry(name: str) -> Entry:
    """The model called `name`. A user's own is not loaded before it is built."""
    if name in ENTRIES:
        return ENTRIES[name]
    if ":" in name:
        named(name)
        return Entry(name, "the user's own", "")
    raise UsageError(
        f"no model called '{name}'",
        fix=f"there are: {', '.join(ENTRIES)}; or yours: module:function, path/file.py:function",
    )


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Inside, torch's generators start at this seed; afterwards they continue as before."""
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


# A model of the user's: a function that is called without arguments and returns an `nn.Module`. Its inputs come from
# `example(batch)` beside it, or from a second value it returns.


@dataclass(frozen=True)
class Name:
    module: str
    """Dotted, or a path that ends in .py."""
    function: str

    @property
    def file(self) -> Path | None:
        return Path(self.module).resolve() if self.module.endswith(".py") else None

    def __str__(self) -> str:
        return f"{self.module}:{self.function}"


def named(text: str) -> Name:
    module, _, function = text.rpartition(":")
    if not module or not function.isidentifier():
        raise UsageError(f"'{text}' names no function", fix="module:function or path/file.py:function")
    name = Name(module, function)
    if name.file and not name.file.is_file():
        raise UsageError(f"no file {module}", fix="path/file.py:function, from the folder you are in")
    return name


def declared(own: Entry) -> Entry:
    """The entry with the knobs that a user's file declares beside its function: `KNOBS = {"depth": ["1", "2", "4"]}`,
    the first value the default. The function takes them by name, as text. Loads the file."""
    if own.module:
        return own
    knobs = getattr(_module(named(own.name)), "KNOBS", {})
    try:
        read = {str(name): Knob(tuple(map(str, values)), str(next(iter(values)))) for name, values in knobs.items()}
    except (AttributeError, TypeError, StopIteration):
        fix = 'KNOBS = {"depth": ["1", "2", "4"]}: a list of values for each name'
        raise SourceError("KNOBS are no lists of values", where=own.name, fix=fix) from None
    return replace(own, knobs=read)


def _build_own(text: str, options: Mapping[str, str]) -> torch.nn.Module:
    """Call the user's function. Whatever goes wrong in it is a SourceError with its line, never a traceback."""
    name = named(text)
    return _made(name, partial(_function(name), **options) if options else _function(name))[0]


def _example_own(text: str, batch: int) -> Any:
    """What the user's own `example(batch)` gives: a tensor, or a tuple or dict of them."""
    name = named(text)
    function = _function(name)
    make = getattr(_module(name), "example", None) or _made(name, function)[1]
    if make is None:
        raise UsageError(
            f"{name}: what goes in?",
            fix="beside it, write `def example(batch): …` that returns a tensor, a tuple or a dict of them",
        )
    with _named_in_errors(name, f"making the inputs of a batch of {batch}"):
        return make(batch)


def _made(name: Name, function: Callable[[], Any]) -> tuple[torch.nn.Module, Callable[[int], Any] | None]:
    import torch

    with _named_in_errors(name, "building the model"):
        made = function()
    model, make = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(model, torch.nn.Module):
        raise SourceError(
            f"{name.function} returned {_kind(model)}, not a torch.nn.Module",
            where=name.module,
            fix="return the module, or (module, function from a batch size to its inputs)",
        )
    return model, make


def _function(name: Name) -> Callable[[], Any]:
    module = _module(name)
    function: Callable[[], Any] | None = getattr(module, name.function, None)
    if not callable(function):
        hint = did_you_mean(name.function, (n for n, v in vars(module).items() if callable(v)))
        raise UsageError(
            f"{name.module} has no function {name.function}", fix=f"{hint}It must stand at the top of the file"
        )
    return function


def _module(name: Name) -> Any:
    with _named_in_errors(name, "importing it"):
        if name.file:
            return imported(name.file)
        if "" not in sys.path and str(Path.cwd()) not in sys.path:
            sys.path.insert(0, str(Path.cwd()))
        try:
            return importlib.import_module(name.module)
        except ModuleNotFoundError as problem:
            if problem.name and f"{name.module}.".startswith(f"{problem.name}."):
                fix = "run from its folder, or name its file"
                raise UsageError(f"no module called '{name.module}'", fix=fix) from None
            raise


@contextmanager
def _named_in_errors(name: Name, doing: str) -> Iterator[None]:
    """Around the user's code: an exception in it becomes an error of that code, with its line. `doing`: what was done
    then."""
    try:
        yield
    except AssayError:
        raise
    except Exception as problem:
        frames = traceback.extract_tb(problem.__traceback__)
        own = next((f for f in reversed(frames) if name.file and Path(f.filename) == name.file), None)
        what = f"{type(problem).__name__}: {problem}".splitlines()[0]
        if isinstance(problem, SyntaxError):
            where = f"{provenance.shown(Path(problem.filename or name.module))}:{problem.lineno}"
        elif own:
            where = f"{name.module}:{own.lineno}"
        else:
            where, what = name.module, f"{what} (at {_elsewhere(frames[-1])})"
        fix = f"this was while {doing}: fix {name}, which is called without arguments, or the module it returns"
        raise SourceError(what, where=where, fix=fix) from None


def _elsewhere(frame: traceback.FrameSummary) -> str:
    """A line of another package, from its folder in site-packages on."""
    return f"{frame.filename.rpartition('site-packages/')[2]}:{frame.lineno}"


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
