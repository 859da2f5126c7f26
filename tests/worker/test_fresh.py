"""A fresh process answers, and whatever ends it is told."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from assay.worker import WorkerLost
from assay.worker.fresh import Fresh, Refused

ROOT = Path(__file__).parents[2]


# A fresh process

SERVANT = """
    import os, pathlib, signal, time
    from assay.errors import UsageError
    from assay.worker.fresh import serve

    def answer(question, tick):
        pathlib.Path("pid").write_text(str(os.getpid()))
        tick("beginning")
        match question["do"]:
            case "die": os.kill(os.getpid(), signal.SIGSEGV)
            case "leave": print("goodbye"); os._exit(3)
            case "sleep": time.sleep(60)
            case "fail": raise ValueError("not like this")
            case "refuse": raise UsageError("no", fix="ask otherwise")
        return question

    serve(answer)
"""


@pytest.fixture
def servant(write, tmp_path, monkeypatch):
    write("servant.py", SERVANT)
    monkeypatch.chdir(tmp_path)
    return {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT / "src")])}


def test_a_fresh_process_answers_says_what_it_does_and_survives_an_exception(servant):
    heard = []
    with Fresh("servant", servant) as process:
        assert process.ask({"do": "x"}, 30, heard.append) == {"do": "x"} and heard == ["beginning"]
        with pytest.raises(Refused, match="ValueError: not like this") as caught:
            process.ask({"do": "fail"}, 30)
        assert "servant.py" in caught.value.where
        with pytest.raises(Refused, match="no\n  → ask otherwise"):
            process.ask({"do": "refuse"}, 30)
        assert process.ask({"do": "y"}, 30) == {"do": "y"}
    assert not psutil.pid_exists(int(Path("pid").read_text()))


@pytest.mark.parametrize(
    ("do", "how", "says"), [("die", "crash", "SIGSEGV"), ("leave", "exit", "exit code 3"), ("sleep", "timeout", "2 s")]
)
def test_whatever_ends_a_process_is_told(servant, do, how, says):
    with Fresh("servant", servant) as process, pytest.raises(WorkerLost, match=says) as caught:
        process.ask({"do": do}, 2 if do == "sleep" else 30)
    assert caught.value.how == how
    assert do != "leave" or "goodbye" in caught.value.output


def test_whoever_is_killed_leaves_no_process_behind(servant):
    ask = f"from assay.worker.fresh import Fresh; Fresh('servant', {servant}).ask({{'do': 'sleep'}}, 60)"
    parent = subprocess.Popen([sys.executable, "-c", ask])
    pid = Path("pid")
    wait(lambda: pid.exists() and pid.read_text(), 60)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    wait(lambda: not psutil.pid_exists(int(pid.read_text())), 10)


def wait(until, seconds):
    end = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < end
        time.sleep(0.05)
