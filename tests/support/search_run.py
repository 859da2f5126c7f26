"""A whole study in a process that a test may kill: `python search_run.py STORAGE TRIALS WORKERS SAMPLER`. Its trials
are done by `search_child`."""

import json
import os
import sys
from pathlib import Path

from assay.search.local import Local
from assay.search.options import Precision
from assay.search.planning import precision
from assay.search.verb import run

HERE = Path(__file__).parent


def crew(workers, memory=1 << 32, **environment):
    path = os.pathsep.join([str(HERE), str(HERE.parents[1] / "src")])
    return Local(workers, {"PYTHONPATH": path, **environment}, memory, child="search_child")


class Inline:
    """A scheduler without processes: `assay.search.child` answers in this one."""

    slots = 1

    def __init__(self):
        self.outcomes = []

    def submit(self, job):
        from assay.search import child
        from assay.search.scheduler import Outcome
        from assay.worker.failure import Refused, describe

        question = json.loads(json.dumps(job.question))
        try:
            answer = json.loads(json.dumps(child.answer(question, lambda text: None)))
            self.outcomes.append(Outcome(job, 0.0, answer))
        except Exception as problem:
            self.outcomes.append(Outcome(job, 0.0, refused=Refused(describe(problem))))

    def outcome(self, seconds):
        return self.outcomes.pop(0) if self.outcomes else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def study(storage, trials=30, workers=1, sampler="tpe", memory=1 << 32, environment=None, **settings):
    options = Precision(storage=str(storage), trials=trials, workers=workers, sampler=sampler, study="s", **settings)
    yield from run(precision("mnist-cnn", options), scheduler=crew(workers, memory, **environment or {}))


if __name__ == "__main__":
    storage, trials, workers, sampler = sys.argv[1:]
    records = [record.to_dict() for record in study(storage, int(trials), int(workers), sampler)]
    print(json.dumps({"records": records, "torch": "torch" in sys.modules}, default=str))
