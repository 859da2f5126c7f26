"""Triton's hash of its own compiler is computed once for each installation."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import triton

from assay.worker import triton_key


@pytest.fixture
def package(tmp_path):
    package = tmp_path / "triton"
    (package / "_C").mkdir(parents=True)
    (package / "language.py").write_text("def load(): ...")
    (package / "_C" / "libtriton.so").write_bytes(b"machine code")
    return package


@pytest.fixture
def cache():
    """Triton's module: it counts how often the hash is computed."""

    def triton_key():
        module.computed += 1
        return f"3.7-{module.computed}"

    module = SimpleNamespace(computed=0, original=triton_key)
    return module


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))


def kept(cache, package):
    cache.triton_key = cache.original
    triton_key.keep(cache, package)
    return cache.triton_key(), cache.triton_key()


def test_the_hash_is_computed_once(cache, package):
    assert kept(cache, package) == ("3.7-1", "3.7-1")
    assert kept(cache, package) == ("3.7-1", "3.7-1")
    assert cache.computed == 1


@pytest.mark.parametrize("name", ["language.py", "_C/libtriton.so"])
def test_a_file_that_changed_gives_another_hash(cache, package, name):
    kept(cache, package)
    changed = package / name
    changed.write_bytes(changed.read_bytes()[::-1])  # of the same size
    assert kept(cache, package) == ("3.7-2", "3.7-2")


def test_the_installed_compiler_is_among_the_files_that_are_looked_at():
    names = {Path(line.split()[0]).name for line in triton_key._files(Path(triton.__file__).parent)}
    assert {"libtriton.so", "compiler.py", "core.py"} <= names
