"""Studies in processes of their own that are killed in the middle."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import search_run

ROOT = Path(__file__).parents[2]
TRIALS = 30


class Running:
    """A study in a process of its own, and the log of its trials. `head`: of a Ray cluster that does them."""

    def __init__(self, folder, storage, workers=2, sampler="tpe", delay=0.08, trials=TRIALS, head=None):
        self.log = folder / "log"
        self.log.touch()
        command = [
            search_run.__file__,
            str(storage),
            str(trials),
            str(workers),
            sampler,
            *([head.address] if head else []),
        ]
        self.hold = folder / "hold"
        """While that file is there, no trial ends."""
        environment = {
            **os.environ,
            **(head.environment if head else {}),
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests" / "support")]),
            "SEARCH_LOG": str(self.log),
            "SEARCH_HOLD": str(self.hold),
            "SEARCH_DELAY": str(delay),
        }
        self.process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, env=environment, text=True)

    def begun(self):
        """Process and point of each trial that was begun, the winner's visit to the test split left out."""
        lines = [line.split(" ") for line in self.log.read_text().splitlines()]
        return [(int(pid), (a, b)) for pid, a, b, test in lines if not test]

    def held(self):
        """Processes whose trials wait for the end of `hold`."""
        return {int(line.split()[0]) for line in self.hold.read_text().splitlines()}

    def wait_for(self, trials):
        until = time.monotonic() + 240
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


def killed_twice(folder, storage):
    """First the whole study in the middle of its trials, then one of its workers: in the end there are as many distinct
    finished trials as were asked for."""
    first = Running(folder, storage)
    first.wait_for(10)
    first.kill()
    second = Running(folder, storage)
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
    assert again <= done_again
    assert not told["heavy"]  # models are the business of the workers
