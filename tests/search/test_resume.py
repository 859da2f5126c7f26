"""Nothing is lost: a study goes on after a kill, each point is done once, and what was running is run again."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("optuna")

import search_run

ROOT = Path(__file__).parents[2]
TRIALS = 30


class Running:
    """A study in a process of its own, and the log of its trials."""

    def __init__(self, folder, workers=2, sampler="tpe", delay=0.05, trials=TRIALS):
        self.log = folder / "log"
        self.log.touch()
        command = [search_run.__file__, str(folder / "studies.sqlite"), str(trials), str(workers), sampler]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests" / "support")]),
            "SEARCH_LOG": str(self.log),
            "SEARCH_DELAY": str(delay),
        }
        self.process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, env=environment, text=True)

    def begun(self):
        """Process and point of each trial that was begun, the winner's visit to the test split left out."""
        lines = [line.split(" ") for line in self.log.read_text().splitlines()]
        return [(int(pid), (a, b)) for pid, a, b, test in lines if not test]

    def wait_for(self, trials):
        until = time.monotonic() + 60
        while len(self.begun()) < trials:
            assert time.monotonic() < until and self.process.poll() is None
            time.sleep(0.01)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()

    def document(self):
        out, _ = self.process.communicate(timeout=120)
        assert self.process.returncode == 0
        return json.loads(out)


def of_trials(records, state="finished"):
    found = [r["evidence"] for r in records if r["evidence"]["role"] == "trial"]
    return [e for e in found if e["state"] == state]


def point(evidence):
    return evidence["parameters"]["a"], evidence["parameters"]["b"]


def test_a_study_that_is_killed_twice_ends_with_as_many_distinct_trials_as_were_asked_for(tmp_path):
    """First the whole study in the middle of its trials, then one of its workers."""
    first = Running(tmp_path)
    first.wait_for(10)
    first.kill()
    second = Running(tmp_path)
    second.wait_for(20)
    os.kill(second.begun()[-1][0], signal.SIGKILL)
    told = second.document()
    finished = of_trials(told["records"])
    assert len(finished) == TRIALS
    assert len({point(e) for e in finished}) == TRIALS
    # What was begun more often than once is what was running at a kill, and says so.
    again = {where for where, times in Counter(where for _, where in second.begun()).items() if times > 1}
    assert len(again) <= 4
    done_again = {point(e) for e in finished if e.get("attempts", 1) > 1}
    assert done_again == again
    assert again
    assert not told["torch"]  # models are the business of the workers


def test_two_processes_share_a_study_and_do_no_point_twice(tmp_path):
    both = [Running(tmp_path, workers=1, sampler="random", trials=16) for _ in range(2)]
    documents = [one.document() for one in both]
    for told in documents:
        assert len({point(e) for e in of_trials(told["records"])}) == len(of_trials(told["records"])) == 16
    begun = both[0].begun()
    assert len({where for _, where in begun}) == len(begun)
    assert len({pid for pid, _ in begun}) == 2


def test_what_is_known_is_told_again_without_a_trial_or_a_look_at_the_test_split(tmp_path):
    environment = {"SEARCH_LOG": str(tmp_path / "log")}
    first = list(search_run.study(tmp_path / "s.sqlite", trials=8, environment=environment))
    lines = (tmp_path / "log").read_text()
    second = list(search_run.study(tmp_path / "s.sqlite", trials=8, environment=environment))
    assert (tmp_path / "log").read_text() == lines
    assert [r.evidence for r in second] == [r.evidence for r in first]
    assert lines.count("test") == 1
    longer = list(search_run.study(tmp_path / "s.sqlite", trials=12, environment=environment))
    assert [r.evidence["parameters"] for r in longer[1:9]] == [r.evidence["parameters"] for r in first[1:9]]
    assert len(of_trials([r.to_dict() for r in longer])) == 12


def test_ctrl_c_keeps_what_was_done_and_the_next_run_begins_with_what_was_running(tmp_path):
    environment = {"SEARCH_LOG": str(tmp_path / "log"), "SEARCH_DELAY": "0.2"}
    records = search_run.study(tmp_path / "s.sqlite", trials=6, workers=2, environment=environment)
    seen = [next(records) for _ in range(2)]  # the control and a trial; another is running
    records.close()
    begun = [tuple(line.split()[1:3]) for line in (tmp_path / "log").read_text().splitlines()]
    (given_up,) = set(begun) - {point(seen[1].evidence)}
    whole = list(search_run.study(tmp_path / "s.sqlite", trials=6, workers=1, environment=environment))
    assert [r.evidence for r in whole[:2]] == [r.evidence for r in seen]
    assert point(whole[2].evidence) == given_up
    assert whole[2].evidence["attempts"] == 2
    assert len(of_trials([r.to_dict() for r in whole])) == 6


def test_a_trial_that_takes_too_long_or_too_much_memory_is_a_failed_record(tmp_path):
    greedy = {"SEARCH_LOG": str(tmp_path / "log"), "SEARCH_DELAY": "30"}
    records = list(search_run.study(tmp_path / "s.sqlite", trials=1, timeout=0.5, environment=greedy))
    assert [str(r.status) for r in records] == ["pass", "fail", "inconclusive"]
    assert "no answer within 0.5 s" in records[1].reason
    first = records[1].evidence["parameters"]
    hungry = {"SEARCH_LOG": str(tmp_path / "log"), "SEARCH_GREED": f"{first['a']},{first['b']}"}
    records = list(search_run.study(tmp_path / "t.sqlite", trials=1, memory=300 << 20, environment=hungry))
    assert "MiB of memory, more than it may have" in records[1].reason
