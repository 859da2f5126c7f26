"""The `assay` command inside this process: as a user runs it, without starting Python anew for each."""

import contextlib
import io
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def said(self):
        """All of it, however it was wrapped."""
        return " ".join((self.out + " " + self.err).split())


def assay(*arguments, cwd=None, env=None):
    """Run the command to its end, in another folder and with more variables if asked to. What is printed is taken as
    UTF-8 text; nothing escapes but an exit code."""
    from assay.cli import main

    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    before = sys.argv
    sys.argv = ["assay", *map(str, arguments)]
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            contextlib.chdir(cwd or Path.cwd()),
            mock.patch.dict(os.environ, env or {}),
        ):
            main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.argv = before
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]
    return Done(int(code or 0), *texts)
