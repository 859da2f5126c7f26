"""The data with which a model is trained, selected and judged, and its weights before compression."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from assay import host
from assay.compress.evidence import Sizes
from assay.models.studies.train.evidence import Config
from assay.models.studies.train.fit import Fit
from assay.models.subject import checkpoint
from assay.models.subject.checkpoint import Checkpoint
from assay.models.subject.data.asset import Tell, silent
from assay.models.subject.data.labelled import SPLITS, Labelled
from assay.models.subject.entry import Entry, seeded
from assay.models.subject.suitable import data_of, verify_takes

if TYPE_CHECKING:
    from torch import nn

_QUICK_EPOCHS = 3
_AFTER = 1 / 3
"""Learning rate of epochs after the base model's, as a fraction of the recipe's."""
Doing = Callable[[str], None]
"""Called with the current activity."""


@dataclass(frozen=True)
class Task:
    """One model on its data, on one device."""

    entry: Entry
    train: Labelled
    validation: Labelled
    test: Labelled
    device: str
    quick: bool
    tokens: int
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of the model that change its usual shape."""

    @classmethod
    def of(cls, entry: Entry, device: str, quick: bool = False, tokens: int = 0, tell: Tell = silent) -> Task:
        known = data_of(entry)
        if not entry.module:
            verify_takes(entry, entry.build(), known)
        tokens = tokens or (known.quick.tokens if quick else known.tokens)
        parts = known.load(*SPLITS, tokens=tokens, tell=tell)
        counts = [min(known.quick.sizes[s], len(p)) if quick else len(p) for s, p in zip(SPLITS, parts, strict=True)]
        train, validation, test = (p.part(0, n).to(device) for p, n in zip(parts, counts, strict=True))
        return cls(entry, train, validation, test, device, quick, tokens)

    @property
    def sizes(self) -> Sizes:
        return Sizes(len(self.train), len(self.validation), len(self.test), self.tokens)

    @property
    def tf32(self) -> bool:
        """Whether training multiplies in TF32, as it does on a GPU. Scores are in float32."""
        return self.device.startswith("cuda")

    @property
    def data(self) -> str:
        """The name of the data set."""
        return self.train.name

    def trained(self, seed: int, epochs: int = 0) -> nn.Module:
        """Return the model trained from this seed's initial weights; it is not saved. `epochs` 0: the recipe's."""
        model = self.entry.build(seed, **self.options).to(self.device)
        self.entry.start(model)
        self._fit(model, self._config(seed, epochs or self._epochs, self.entry.recipe.lr))
        return model

    @property
    def _epochs(self) -> int:
        return _QUICK_EPOCHS if self.quick else self.entry.recipe.epochs

    def base(self, seed: int, doing: Doing = lambda text: None) -> tuple[nn.Module, str]:
        """Return the model trained from this seed's initial weights, and the SHA-256 of its file. It is trained once,
        then loaded from the file."""
        config = self._config(seed, self._epochs, self.entry.recipe.lr)
        model = self.entry.build(seed, **self.options).to(self.device)
        kept = self._kept(config)
        if not kept.is_file():
            doing(f"training {self.entry.name}, seed {seed}")
            self.entry.start(model)
            self._fit(model, config)
            checkpoint.write(kept, Checkpoint(model.state_dict(), {"config": asdict(config)}))
        checkpoint.load_into(model, kept)
        return model.eval(), hashlib.sha256(kept.read_bytes()).hexdigest()

    def train_on(self, model: nn.Module, epochs: int, seed: int) -> None:
        """Train for more epochs; the model ends with the weights that are best on the validation split."""
        if epochs:
            self._fit(model, self._config(seed, epochs, _AFTER * self.entry.recipe.lr))

    def _fit(self, model: nn.Module, config: Config) -> None:
        with seeded(config.seed), self.entry.guarded("training it"):
            fit = Fit(model, self.train, self.validation, config)
            fit.run(lambda: None, float("inf"), lambda: None)
            model.load_state_dict(fit.best)
        model.eval()

    def _config(self, seed: int, epochs: int, rate: float) -> Config:
        recipe, threads = self.entry.recipe, len(os.sched_getaffinity(0))
        items = len(self.train) if self.quick else 0
        named = Config(self.entry.name, self.entry.chosen(self.options), self.data, items, self.tokens)
        return replace(
            named,
            epochs=epochs,
            batch=recipe.batch,
            seed=seed,
            lr=rate,
            weight_decay=recipe.weight_decay,
            patience=epochs,
            device=self.device,
            threads=threads,
            tf32=self.tf32,
        )

    def _kept(self, config: Config) -> Path:
        """Return the base model's file: one for each configuration, and for each version of a user's own model."""
        own = self.entry.file if not self.entry.module else None
        text = own.read_text(errors="replace") if own else ""
        name = hashlib.sha256((json.dumps(asdict(config), sort_keys=True) + text).encode()).hexdigest()[:16]
        return host.data_folder() / "weights" / f"{self.entry.slug}-base-{name}.safetensors"
