"""The training loop: a model, two splits of the data, and steps that can stop anywhere and resume bit for bit."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from assay.errors import AssayError
from assay.models.studies.train.evidence import Config, Epoch
from assay.models.subject.checkpoint import Checkpoint
from assay.models.subject.data.labelled import Labelled
from assay.models.subject.score import accuracy, placed, verify_logits

if TYPE_CHECKING:
    import torch

WARM_UP = 0.2
"""Fraction of all steps over which the rate rises; then it falls along a half cosine to zero."""
_SHUFFLES = 1_000_003
"""Factor of the seed, so that the orders of one seed's epochs differ from those of other seeds."""


class Diverged(AssayError):
    """The loss is not finite any more."""


def rate(step: int, total: int, highest: float) -> float:
    """Return the learning rate of a step. It depends only on the step's number, so that no state has to be saved."""
    rising = WARM_UP * total
    at = step + 0.5  # the middle of the step, so that neither the first nor the last has rate 0
    share = at / rising if at < rising else 0.5 * (1 + math.cos(math.pi * (at - rising) / (total - rising)))
    return highest * share


@contextmanager
def _tf32() -> Iterator[None]:
    """Multiply float32 matrices in TF32, which is a few times as fast on a GPU."""
    import torch

    products = torch.backends.cuda.matmul
    before = products.allow_tf32
    products.allow_tf32 = True
    try:
        yield
    finally:
        products.allow_tf32 = before


class Fit:
    """A training run. Between two steps, `state()` holds everything needed to resume it."""

    def __init__(self, model: torch.nn.Module, train: Labelled, validation: Labelled, settings: Config) -> None:
        import torch

        self.model, self.train, self.validation, self.settings = model, train, validation, settings
        self.device, self.dtype = placed(model)
        learning = [p for p in model.parameters() if p.requires_grad]
        self.optimiser = torch.optim.AdamW(learning, settings.lr, weight_decay=settings.weight_decay, fused=True)
        self.steps = math.ceil(len(train) / settings.batch)
        self.epoch = self.step = 0
        self.order = self._shuffled()
        self.losses = torch.full((settings.epochs * self.steps,), math.nan, device=self.device)
        self.correct = torch.zeros((), dtype=torch.int64, device=self.device)
        self.history: list[Epoch] = []
        self.best: dict[str, torch.Tensor] = {}
        self.best_epoch = 0
        self.spent = 0.0
        """Seconds in this epoch before it was last resumed."""

    @property
    def total(self) -> int:
        return self.settings.epochs * self.steps

    @property
    def done(self) -> int:
        """Number of steps done."""
        return self.epoch * self.steps + self.step

    @property
    def stopped(self) -> bool:
        return self.epoch - self.best_epoch >= self.settings.patience

    @property
    def finished(self) -> bool:
        return self.epoch >= self.settings.epochs or self.stopped

    def run(self, save: Callable[[], None], every: float, tick: Callable[[], None]) -> None:
        """Train until all epochs are done or training stops early. `save` is called after each epoch, and within an
        epoch every `every` seconds."""
        saved = time.monotonic()
        while not self.finished:
            self.model.train()
            began, before = time.monotonic(), self.spent
            while self.step < self.steps:
                self._step()
                self.spent = before + time.monotonic() - began
                tick()
                if time.monotonic() - saved >= every and self.step < self.steps:
                    save()
                    saved = time.monotonic()
            self._close(began, before)
            save()
            saved = time.monotonic()
            tick()

    def _step(self) -> None:
        from torch.nn import functional

        size = self.settings.batch
        which = self.order[self.step * size : (self.step + 1) * size]
        labels = self.train.labels[which]
        for group in self.optimiser.param_groups:
            group["lr"] = rate(self.done, self.total, self.settings.lr)
        self.optimiser.zero_grad(set_to_none=True)
        with _tf32() if self.settings.tf32 else nullcontext():
            logits = self.model(*self.train.inputs(which, self.dtype))
            verify_logits(logits, len(labels), self.train)
            loss = functional.cross_entropy(logits, labels)
            loss.backward()  # type: ignore[no-untyped-call, unused-ignore]
        self.optimiser.step()
        # These stay on the device: reading a number from a GPU at every step would wait for it.
        self.losses[self.done] = loss.detach()
        self.correct += (logits.detach().argmax(1) == labels).sum()
        self.step += 1

    def _close(self, began: float, before: float) -> None:
        """End an epoch: score it, keep the weights if they are the best, and shuffle for the next one."""
        losses = self.losses[self.epoch * self.steps : self.done]
        if not losses.isfinite().all():
            step = int((~losses.isfinite()).nonzero()[0])
            raise Diverged(f"the loss is not finite in epoch {self.epoch + 1}, step {step + 1}", fix="a lower --lr")
        score = accuracy(self.model, self.validation, what="validation")
        done = Epoch(
            self.epoch + 1,
            train_loss=float(losses.double().mean()),
            train_accuracy=int(self.correct) / len(self.train),
            validation_loss=float(score.loss or 0.0),
            validation_accuracy=score.value,
            seconds=before + time.monotonic() - began,
        )
        self.history.append(done)
        if not self.best or done.merit > self.history[self.best_epoch - 1].merit:
            self.best_epoch = self.epoch + 1
            self.best = {n: t.detach().clone() for n, t in self.model.state_dict().items()}
        self.epoch, self.step, self.spent = self.epoch + 1, 0, 0.0
        self.correct.zero_()
        self.order = self._shuffled()

    def _shuffled(self) -> torch.Tensor:
        import torch

        source = torch.Generator().manual_seed(_SHUFFLES * self.settings.seed + self.epoch)
        return self.train.order(source, self.settings.batch)

    def state(self) -> Checkpoint:
        import torch

        tensors = {f"model.{n}": t for n, t in self.model.state_dict().items()}
        tensors |= {f"best.{n}": t for n, t in self.best.items()}
        for number, kept in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimizer.{number}.{n}": t for n, t in kept.items()}
        tensors |= {"order": self.order, "losses": self.losses, "correct": self.correct}
        tensors["rng.cpu"] = torch.get_rng_state()
        if self.device.startswith("cuda"):
            tensors["rng.cuda"] = torch.cuda.get_rng_state(self.device)
        return Checkpoint(
            tensors,
            {
                "epoch": self.epoch,
                "step": self.step,
                "spent": self.spent,
                "history": [asdict(epoch) for epoch in self.history],
                "best_epoch": self.best_epoch,
            },
        )

    def restore(self, kept: Checkpoint) -> None:
        import torch

        self.model.load_state_dict(_below("model.", kept.tensors))
        self.best = {n: t.to(self.device) for n, t in _below("best.", kept.tensors).items()}
        optimiser: dict[int, dict[str, torch.Tensor]] = {}
        for name, tensor in _below("optimizer.", kept.tensors).items():
            number, _, what = name.partition(".")
            optimiser.setdefault(int(number), {})[what] = tensor
        self.optimiser.load_state_dict(
            {"state": optimiser, "param_groups": self.optimiser.state_dict()["param_groups"]}
        )
        self.order = kept.tensors["order"].to(self.order.device)
        self.losses.copy_(kept.tensors["losses"])
        self.correct.copy_(kept.tensors["correct"])
        for name in ("epoch", "step", "spent", "best_epoch"):
            setattr(self, name, kept.facts[name])
        self.history = [Epoch(**epoch) for epoch in kept.facts["history"]]
        torch.set_rng_state(kept.tensors["rng.cpu"])
        if "rng.cuda" in kept.tensors:
            torch.cuda.set_rng_state(kept.tensors["rng.cuda"], self.device)


def _below(prefix: str, tensors: Any) -> dict[str, torch.Tensor]:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
