"""A whole study in a process that a test may kill: `python search_run.py STORAGE TRIALS WORKERS SAMPLER [ADDRESS]`. Its
trials are done by `search_child`, on the Ray cluster at the address where there is one."""

import json
import os
import signal
import sys
from pathlib import Path

from assay.search.cluster import Cluster
from assay.search.local import Local
from assay.search.options import Precision
from assay.search.planning import precision
from assay.search.scheduler import Outcome
from assay.search.verb import run
from assay.worker.failure import Refused, describe

HERE = Path(__file__).parent


def crew(workers, memory=1 << 32, **environment):
    path = os.pathsep.join([str(HERE), str(HERE.parents[1] / "src")])
    return Local(workers, {"PYTHONPATH": path, **environment}, memory, child="search_child")


def on_ray(address):
    """Processes on a cluster, with what this one was told about its log."""
    told = {name: value for name, value in os.environ.items() if name.startswith("SEARCH_")}
    path = os.pathsep.join([str(HERE), str(HERE.parents[1] / "src")])
    return Cluster(address, environment={"PYTHONPATH": path, **told}, child="search_child")


class Inline:
    """A scheduler without processes: the module, `assay.search.child` or one like it, answers in this one."""

    slots = 1

    def __init__(self, child):
        self.child, self.outcomes = child, []

    def submit(self, job):
        question = json.loads(json.dumps(job.question))
        try:
            answer = json.loads(json.dumps(self.child.answer(question, lambda text: None)))
            self.outcomes.append(Outcome(job, 0.0, answer))
        except Exception as problem:
            self.outcomes.append(Outcome(job, 0.0, refused=Refused(describe(problem))))

    def outcome(self, seconds):
        return self.outcomes.pop(0) if self.outcomes else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def study(storage, trials=30, workers=1, sampler="tpe", memory=1 << 32, environment=None, scheduler=None, **settings):
    options = Precision(storage=str(storage), trials=trials, workers=workers, sampler=sampler, study="s", **settings)
    own = scheduler or crew(workers, memory, **environment or {})
    yield from run(precision("mnist-cnn", options), scheduler=own)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background inherit one that is ignored
    storage, trials, workers, sampler, *ray = sys.argv[1:]
    elsewhere = on_ray(*ray) if ray else None
    records = [r.to_dict() for r in study(storage, int(trials), int(workers), sampler, scheduler=elsewhere)]
    heavy = [name for name in ("torch", "ray") if name in sys.modules]
    print(json.dumps({"records": records, "heavy": heavy}, default=str))
