"""tools/wheelhouse.py: what it collects is complete and pinned, and its slices keep their limit."""

import hashlib
import importlib.util
import json
import re
import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
spec = importlib.util.spec_from_file_location("wheelhouse", ROOT / "tools" / "wheelhouse.py")
assert spec and spec.loader
wheelhouse = importlib.util.module_from_spec(spec)
spec.loader.exec_module(wheelhouse)


def needs(requirements: list[str]) -> set[str]:
    """Names required on Linux, extras and other systems' requirements left out."""
    wanted = set()
    for line in requirements:
        name, _, marker = line.partition(";")
        if "extra" not in marker and "Windows" not in marker and "win32" not in marker:
            wanted.add(wheelhouse.canonical(re.match(r"[\w.-]+", name)[0]))
    return wanted


def test_every_runtime_dependency_travels_or_is_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    queue = needs(project["dependencies"])
    seen: set[str] = set()
    while queue:
        name = queue.pop()
        if name in seen or name in wheelhouse.HOST:
            continue
        seen.add(name)
        queue |= needs(requires(name) or [])
    python_old = {"exceptiongroup", "tomli", "backports-strenum"}  # only asked for below Python 3.11
    assert seen - python_old == set(wheelhouse.NEEDED)


def test_everything_that_travels_is_pinned_and_torch_never_travels() -> None:
    pins = wheelhouse.read_pins(ROOT / "constraints.txt")
    small, full = wheelhouse.choose(pins, full=False), wheelhouse.choose(pins, full=True)
    assert set(small) == {*wheelhouse.NEEDED, *wheelhouse.TESTS} and "torch" not in full
    assert small.items() <= full.items() and full.items() <= pins.items()
    with pytest.raises(SystemExit, match="psutil"):
        wheelhouse.choose({name: v for name, v in pins.items() if name != "psutil"}, full=False)


def test_slices_keep_their_limit() -> None:
    sizes = {"a": 6, "b": 5, "c": 4, "d": 3, "e": 2}
    slices = wheelhouse.pack(sizes, 10)
    assert sorted(name for names in slices for name in names) == sorted(sizes)
    assert len(slices) == 2 and all(sum(sizes[n] for n in names) <= 10 for names in slices)
    with pytest.raises(SystemExit, match="a alone"):
        wheelhouse.pack(sizes, 5)


def test_index_tells_the_truth_and_nothing_stale_is_left(tmp_path: Path) -> None:
    out = tmp_path / "wheelhouse"
    (out / "slice-9").mkdir(parents=True)
    wheels = [tmp_path / "rich-1-py3-none-any.whl", tmp_path / "other-1-py3-none-any.whl"]
    for wheel in wheels:
        wheel.write_bytes(wheel.name.encode() * 9)
    wheelhouse.write(wheels, 300, out, "3.12", "x86_64")

    index = json.loads((out / "INDEX.json").read_text())
    assert {p.relative_to(out).as_posix() for p in out.glob("*/*")} == {w["file"] for w in index["wheels"]}
    assert not (out / "slice-9").exists() and index["slices"] == 2
    for wheel in index["wheels"]:
        data = (out / wheel["file"]).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (wheel["bytes"], wheel["sha256"])


def test_a_wheel_above_the_limit_travels_in_parts_and_is_whole_again(tmp_path: Path) -> None:
    content = bytes(range(256)) * 10
    (tmp_path / "in").mkdir()
    big, small = tmp_path / "in" / "big-1-py3-none-any.whl", tmp_path / "in" / "small-1-py3-none-any.whl"
    big.write_bytes(content)
    small.write_bytes(b"small")
    index = wheelhouse.write([big, small], 250, tmp_path / "out", "3.12", "x86_64")
    assert index["slices"] == 11 and all(entry["bytes"] <= 250 for entry in index["wheels"])
    assert [wheel.name for wheel in wheelhouse.join(tmp_path / "out")] == [big.name]
    wheels = {w.name: w.read_bytes() for w in (tmp_path / "out").glob("slice-*/*")}
    assert wheels == {big.name: content, small.name: b"small"}
    assert wheelhouse.join(tmp_path / "out") == []


def test_peers_are_pinned_with_what_they_need() -> None:
    peers = wheelhouse.read_pins(ROOT / "peers.txt")
    assert {"liger-kernel", "quack-kernels"} <= set(peers)
    assert not set(peers) & {"torch", "triton", "numpy"}, "the machine's own fit its driver"
