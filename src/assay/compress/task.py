"""What a model is trained on, chosen by and judged by; and its weights before anything is compressed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from assay import host
from assay.errors import UsageError
from assay.models.studies.train.evidence import Config
from assay.models.studies.train.fit import Fit
from assay.models.studies.train.planning import VALIDATION
from assay.models.subject import checkpoint
from assay.models.subject.checkpoint import Checkpoint
from assay.models.subject.data.asset import Tell, silent
from assay.models.subject.data.digits import DATASETS, Digits, load
from assay.models.subject.registry import Entry, seeded

if TYPE_CHECKING:
    from torch import nn

QUICK = (6_000, 1_000, 2_000)
"""Elements of the three splits that `--quick` uses."""
_BASE_EPOCHS, _BASE_EPOCHS_QUICK = 5, 3
_RATE, _RATE_AFTER = 3e-3, 1e-3
"""The highest learning rate of the base model, and of the epochs after it."""
Steps = Callable[[str], None]


@dataclass(frozen=True)
class Task:
    """One model on its data, on one device."""

    entry: Entry
    train: Digits
    validation: Digits
    test: Digits
    device: str
    quick: bool

    @classmethod
    def of(cls, entry: Entry, device: str, quick: bool, tell: Tell = silent) -> Task:
        if entry.data not in DATASETS:
            raise UsageError(
                f"{entry.name} has no data to be trained on and judged by",
                fix="name a model that `assay model train` trains",
            )
        whole = load(entry.data, "train", tell)
        parts = [whole.part(0, len(whole) - VALIDATION), whole.part(len(whole) - VALIDATION, len(whole))]
        parts.append(load(entry.data, "test", tell))
        sizes = QUICK if quick else tuple(map(len, parts))
        train, validation, test = (p.part(0, n).to(device) for p, n in zip(parts, sizes, strict=True))
        return cls(entry, train, validation, test, device, quick)

    def base(self, seed: int, tell: Steps = lambda text: None) -> tuple[nn.Module, str]:
        """The model trained from this seed's first weights, and the hash of its weights. Trained once, then kept."""
        config = self._config(seed, _BASE_EPOCHS_QUICK if self.quick else _BASE_EPOCHS, _RATE)
        model = self.entry.build(seed).to(self.device)
        kept = self._kept(config)
        if not kept.is_file():
            tell(f"training {self.entry.name}, seed {seed}")
            self._fit(model, config)
            checkpoint.write(kept, Checkpoint(model.state_dict(), {"config": asdict(config)}))
        checkpoint.load_into(model, kept)
        return model, hashlib.sha256(kept.read_bytes()).hexdigest()

    def trained(self, model: nn.Module, epochs: int, seed: int) -> None:
        """Train it for some more epochs; it ends as the best of them by the validation split."""
        if epochs:
            self._fit(model, self._config(seed, epochs, _RATE_AFTER))

    def _fit(self, model: nn.Module, config: Config) -> None:
        with seeded(config.seed), self.entry.guarded():
            fit = Fit(model, self.train, self.validation, config)
            fit.run(lambda: None, 1e9, lambda: None)
            model.load_state_dict(fit.best)
        model.eval()

    def _config(self, seed: int, epochs: int, rate: float) -> Config:
        threads = len(os.sched_getaffinity(0))
        sized = Config(self.entry.name, self.entry.chosen({}), self.entry.data, len(self.train), epochs, 64, seed, rate)
        return replace(sized, weight_decay=0.01, patience=epochs, device=self.device, threads=threads)

    def _kept(self, config: Config) -> Path:
        name = hashlib.sha256(json.dumps(asdict(config), sort_keys=True).encode()).hexdigest()[:16]
        return host.data_folder() / "weights" / f"{self.entry.slug}-base-{name}.safetensors"
