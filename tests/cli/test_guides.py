"""A message names a guide that is on the reader's machine, whether Assay is a repository there or a package."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from assay.cli import guides
from command import assay

ROOT = Path(__file__).parents[2]


def test_a_message_gives_the_path_of_the_page_outside_the_repository(tmp_path):
    (tmp_path / "empty.py").write_text("")
    done = assay("check", "empty.py", cwd=tmp_path)
    named = re.search(r"see (\S+first-kernel\.md)", done.err)
    assert done.code == 2 and named and Path(named[1]).is_file()
    assert "see docs/first-kernel.md" in assay("check", tmp_path / "empty.py", cwd=ROOT).err


def test_the_installed_package_has_its_own(tmp_path, monkeypatch):
    page = tmp_path / "assay" / "docs" / "kernels" / "gelu.md"
    page.parent.mkdir(parents=True)
    page.touch()
    monkeypatch.setattr(guides, "FOLDERS", (tmp_path / "assay", tmp_path))
    monkeypatch.chdir(tmp_path)
    assert guides.located("(docs/kernels/gelu.md)") == f"({page})"
    for kept in ("see docs/none.md", "see my/docs/kernels/gelu.md"):
        assert guides.located(kept) == kept


def test_every_page_that_the_source_names_exists():
    for file in (ROOT / "src").rglob("*.py"):
        for page in guides._PAGE.findall(file.read_text()):
            assert (ROOT / page).is_file(), f"{file}: {page}"


@pytest.mark.slow
def test_the_wheel_holds_the_guides(tmp_path):
    pytest.importorskip("setuptools", minversion="77")
    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "docs"):
        (source / name).symlink_to(ROOT / name)
    (source / "src" / "assay").mkdir(parents=True)
    (source / "src" / "assay" / "__init__.py").touch()
    built = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", tmp_path, source],
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    pages = {f"assay/{page.relative_to(ROOT)}" for page in (ROOT / "docs").rglob("*.md")}
    assert pages <= set(zipfile.ZipFile(wheel).namelist())
