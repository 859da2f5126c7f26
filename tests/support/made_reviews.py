"""A data set of made-up reviews, with a tokenizer of its own, in the layout of the real ones: nothing is fetched."""

import csv
import hashlib
import io
import json
import random

from assay.models.subject.data import tokens
from assay.models.subject.data.asset import Asset, File, Folder
from assay.models.subject.data.reviews import Review, Text, distinct, divided, from_lines, to_lines

FOR, AGAINST, OTHER = ("great", "fine", "lovely"), ("awful", "dull", "poor"), ("a", "film", "of", "the", "sea", "long")
SPECIAL = {"[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102}
IDS = {word: 103 + number for number, word in enumerate((*FOR, *AGAINST, *OTHER, "##s"))}


def made(count, seed=0, longest=30):
    """So many reviews, half of them for: one word in three says so. No text comes twice."""
    source = random.Random(seed)
    reviews = {}
    while len(reviews) < count:
        label = len(reviews) % 2
        words = (
            source.choice((FOR if label else AGAINST) if source.random() < 0.34 else OTHER) for _ in range(longest)
        )
        text = " ".join(list(words)[: source.randint(4, longest)])
        if {*text.split()} & {*FOR, *AGAINST}:
            reviews.setdefault(text, Review(text, label))
    return list(reviews.values())


def as_csv(reviews, source="imdb"):
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(["text", "label", "source"])
    writer.writerows([r.text, r.label, source] for r in reviews)
    return out.getvalue().encode()


def tokenizer():
    """The content of a tokenizer.json that reads these words as BERT's would."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    vocabulary = {f"[unused{n}]": n for n in range(1, 100)} | SPECIAL | IDS
    reader = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    reader.normalizer = normalizers.BertNormalizer(lowercase=True)
    reader.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(name, SPECIAL[name]) for name in ("[CLS]", "[SEP]")]
    reader.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    return json.dumps(json.loads(reader.to_str()), sort_keys=True).encode()


def asset(name, folder, where, contents):
    """An asset whose files lie in a folder, as a package would hold them."""
    where.mkdir(parents=True, exist_ok=True)
    files = tuple(File(n, hashlib.sha256(c).hexdigest(), len(c)) for n, c in contents.items())
    for file in files:
        (where / file.name).write_bytes(file.packed(contents[file.name]))
    return Asset(name, folder, files, (Folder(where),))


def texts(where, reviews, judged=32, chosen_by=32):
    splits = divided(distinct(reviews), judged, chosen_by)
    contents = {f"{split}.jsonl.gz": to_lines(part) for split, part in splits.items()}
    found = asset("imdb", "datasets/imdb", where, contents)
    sizes = {split: len(part) for split, part in splits.items()}
    return Text(found, "{}.jsonl.gz".format, lambda content, split: from_lines(content)), sizes


def pieces(where, content=None):
    return asset("minilm-tokenizer", "weights/minilm", where, {"tokenizer.json": content or tokenizer()})


def data_set(where, reviews=None, **sizes):
    text, counts = texts(where / "texts", reviews or made(160), **sizes)
    return tokens.data_set(text, counts, pieces(where / "tokenizer"))
