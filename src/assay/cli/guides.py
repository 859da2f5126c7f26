"""The guides that messages name (`docs/ops.md`): in the repository, or in the installed package."""

from __future__ import annotations

import re
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
FOLDERS = (_PACKAGE, _PACKAGE.parents[1])
"""Folders that may hold docs/: that of an installed package, and the repository."""
_PAGE = re.compile(r"(?<![\w/.-])docs/[\w/-]+\.md")


def located(text: str) -> str:
    """Return the text with the path of each page that the current folder does not have."""
    return _PAGE.sub(lambda match: _path(match[0]), text)


def _path(page: str) -> str:
    found = next((folder / page for folder in FOLDERS if (folder / page).is_file()), None)
    return page if found is None or Path(page).is_file() else str(found)
