"""The end of the command's process: nothing that Python does at an end is missing, but for the freeing of objects."""

import subprocess
import sys

import pytest

SCRIPT = """
import atexit, tempfile, threading, time
from assay.cli.leaving import leave
atexit.register(print, "done at the end")
folder = tempfile.TemporaryDirectory()
print(folder.name)
class Slow:
    def __del__(self): print("freed")
kept = Slow()
{more}
leave(3)
"""


@pytest.mark.parametrize(
    ("more", "last"),
    [
        ("", "done at the end"),
        ("threading.Thread(target=lambda: (time.sleep(0.3), print('a thread'))).start()", "freed"),
    ],
    ids=["alone", "with a thread that is not done"],
)
def test_what_is_registered_is_done_and_nothing_printed_is_lost(tmp_path, more, last):
    done = subprocess.run([sys.executable, "-c", SCRIPT.format(more=more)], capture_output=True, text=True)
    assert done.returncode == 3 and done.stderr == ""
    folder, *printed = done.stdout.splitlines()
    assert "done at the end" in printed and printed[-1] == last
    assert ("a thread" in printed) is bool(more)
    assert not (tmp_path.parent / folder).exists()
