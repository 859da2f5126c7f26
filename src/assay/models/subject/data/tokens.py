"""Reviews as word pieces, tokenised once for each split and tokenizer and cached in the data folder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from assay import host
from assay.errors import AssayError, Lacking, UsageError
from assay.models.subject import checkpoint
from assay.models.subject.checkpoint import Checkpoint
from assay.models.subject.data.asset import Asset, Tell
from assay.models.subject.data.labelled import DataSet, Quick
from assay.models.subject.data.published import WORD_PIECES
from assay.models.subject.data.reviews import CLASSES, Review, Text

if TYPE_CHECKING:
    import torch

LONGEST = 512
"""Number of BERT's positions. Longer reviews are cut to their first 511 tokens and [SEP]."""
QUICK = Quick({"train": 1_500, "validation": 500, "test": 500}, tokens=128)
PAD, CLS, SEP = 0, 101, 102
"""Ids in BERT's vocabulary. Every text is [CLS] … [SEP]."""
_WINDOW = 50
"""Number of batches within which reviews are sorted by length."""
_VERSION = 1
"""Version of the file's layout."""


@dataclass(frozen=True)
class Reviews:
    """Token ids and labels of one split. A batch is as long as its longest review."""

    name: str
    ids: torch.Tensor
    """int32, n × the longest, padded with 0."""
    lengths: torch.Tensor
    """int64, on the CPU, where a batch's length is needed: reading it from a GPU would wait for all its work."""
    labels: torch.Tensor
    """int64, n."""
    sha256: Mapping[str, str]
    """SHA-256 of the files they were read from, and of the tokenizer."""
    classes: ClassVar[int] = CLASSES
    item: ClassVar[str] = "review"
    form: ClassVar[str] = "review: token ids and mask, both reviews × tokens"
    scoring_batch: ClassVar[int] = 64

    def __len__(self) -> int:
        return len(self.labels)

    def part(self, begin: int, end: int) -> Reviews:
        these = slice(begin, end)
        return replace(self, ids=self.ids[these], lengths=self.lengths[these], labels=self.labels[these])

    def to(self, device: str) -> Reviews:
        return replace(self, ids=self.ids.to(device), labels=self.labels.to(device))

    def inputs(self, which: torch.Tensor | slice, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
        """Return ids and mask (1: a token, 0: padding), int64."""
        import torch

        lengths = self.lengths[which if isinstance(which, slice) else which.cpu()]
        longest = int(lengths.max())
        ids = self.ids[which if isinstance(which, slice) else which.to(self.ids.device), :longest].to(torch.int64)
        inside = torch.arange(longest, device=ids.device) < lengths.to(ids.device)[:, None]
        return ids, inside.to(torch.int64)

    def order(self, generator: torch.Generator, batch: int) -> torch.Tensor:
        """Return a random order in which reviews of similar length share batches: each 50 batches are sorted by length,
        then the batches are shuffled. In fully random batches nearly half of all tokens would be padding."""
        import torch

        shuffled = torch.randperm(len(self), generator=generator)
        whole = len(self) - len(self) % batch
        windows = shuffled[:whole].split(_WINDOW * batch)
        grouped = [window[self.lengths[window].argsort(stable=True)] for window in windows]
        batches = torch.cat([*grouped, shuffled[:0]]).reshape(-1, batch)
        moved = batches[torch.randperm(len(batches), generator=generator)]
        return torch.cat([moved.reshape(-1), shuffled[whole:]])

    def batches(self, size: int) -> Iterator[torch.Tensor | slice]:
        """Yield batches by length, longest first, so that running out of memory happens at once."""
        yield from self.lengths.argsort(descending=True, stable=True).split(size)


def data_set(text: Text, sizes: Mapping[str, int], tokenizer: Asset = WORD_PIECES) -> DataSet:
    def read(splits: tuple[str, ...], tokens: int, tell: Tell) -> tuple[Reviews, ...]:
        return tuple(load(text, split, tokenizer, tokens, tell) for split in splits)

    return DataSet(
        text.asset.name,
        (text.asset, tokenizer),
        Reviews.classes,
        Reviews.item,
        Reviews.form,
        sizes,
        blank,
        read,
        QUICK,
        LONGEST,
    )


def blank(batch: int) -> tuple[torch.Tensor, ...]:
    import torch

    ids = torch.tensor([[CLS, SEP, PAD]] * batch)
    return ids, (ids != PAD).to(torch.int64)


def load(text: Text, split: str, tokenizer: Asset, tokens: int, tell: Tell) -> Reviews:
    """Load that split from the cache, after tokenising it if needed, with each review cut to `tokens`."""
    import torch

    if not 2 <= tokens <= LONGEST:
        raise UsageError(f"reviews of {tokens} tokens", fix=f"2 to {LONGEST}: BERT has no more positions")
    (file,) = tokenizer.files
    sha256 = {**text.sha256(split), file.name: file.sha256}
    place = cache_file(text, split, sha256)
    kept = _kept(place, tell)
    if kept is None:
        kept = _tokenised(text.read(split, tell), tokenizer, tell)
        checkpoint.write(place, kept)
    ids, starts, labels = (kept.tensors[name] for name in ("ids", "starts", "labels"))
    lengths = starts.diff().clamp(max=tokens)
    padded = torch.full((len(labels), int(lengths.max())), PAD, dtype=torch.int32)
    for row, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=False)):
        padded[row, :length] = ids[start : start + length]
    padded[torch.arange(len(labels)), lengths - 1] = SEP  # also if it was cut
    return Reviews(text.asset.name, padded, lengths, labels, sha256)


def cache_file(text: Text, split: str, sha256: Mapping[str, str]) -> Path:
    """Return the cache file, which differs for each tokenizer and content."""
    about = "\0".join(f"{name}\0{digest}" for name, digest in sorted(sha256.items()))
    key = hashlib.sha256(f"{_VERSION}\0{split}\0{about}".encode()).hexdigest()[:16]
    return host.data_folder() / "tokens" / f"{text.asset.name}-{split}-{key}.safetensors"


def _kept(place: Path, tell: Tell) -> Checkpoint | None:
    if not place.exists():
        return None
    try:
        return checkpoint.read(place)
    except AssayError as problem:
        tell(f"{problem.what}; tokenising again")
        return None


def _tokenised(reviews: Sequence[Review], tokenizer: Asset, tell: Tell) -> Checkpoint:
    import torch

    rows = encoded(tokenizer, [review.text for review in reviews], tell)
    starts = torch.tensor([0, *map(len, rows)]).cumsum(0)
    ids = torch.tensor([one for row in rows for one in row], dtype=torch.int32)
    return Checkpoint({"ids": ids, "starts": starts, "labels": torch.tensor([r.label for r in reviews])}, {})


def encoded(tokenizer: Asset, texts: Sequence[str], tell: Tell) -> list[list[int]]:
    """Return the ids of each text, [CLS] … [SEP], cut to the longest that BERT takes."""
    try:
        from tokenizers import Tokenizer
    except ModuleNotFoundError:
        raise Lacking("no tokenizers here", fix="pip install 'kernel-assay[models]'") from None
    (file,) = tokenizer.files
    reader = Tokenizer.from_str(tokenizer.read(file.name, tell).decode())
    reader.enable_truncation(LONGEST)
    reader.no_padding()
    tell(f"tokenising {len(texts)} reviews")
    return [row.ids for row in reader.encode_batch_fast(list(texts))]
