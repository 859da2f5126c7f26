"""The wheel holds the guides of docs/, so that a message can name a page that is on the user's machine. Everything else
stands in pyproject.toml."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

DOCS = Path("docs")


class WithGuides(build_py):
    def run(self) -> None:
        super().run()
        if self.editable_mode:  # the repository has them
            return
        for page in DOCS.rglob("*.md"):
            self.copy_file(str(page), self._placed(page))

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        return [*super().get_outputs(include_bytecode), *map(self._placed, DOCS.rglob("*.md"))]

    def _placed(self, page: Path) -> str:
        target = Path(self.build_lib) / "assay" / page
        self.mkpath(str(target.parent))
        return str(target)


setup(cmdclass={"build_py": WithGuides})
