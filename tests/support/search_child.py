"""Stands in for `assay.search.child` where a test is about processes and storages: a hundred points, no torch, no data.
Each point that is judged is a line of the file $SEARCH_LOG: when it was begun, and by whom. While there is a file
$SEARCH_HOLD, no trial ends, and each that would is a line of it."""

import os
import time
from pathlib import Path

from assay.models.subject.knobs import Knob
from assay.search import space

TEN = tuple(map(str, range(10)))
SPACE = {"a": Knob(TEN, "0"), "b": Knob(TEN, "0")}
INFEASIBLE = {("7", "7"), ("3", "3")}


def judged(a, b):
    """The fewest bits are at a=9, b=9, which is not accurate enough; the best that is allowed has a + b = 15."""
    a, b = int(a), int(b)
    accuracy = 0.9 if a + b <= 15 else 0.5
    return {
        "accuracy": accuracy,
        "bits": 1000 - 10 * (a + b),
        "weights": 10,
        "test": None,
        "latency": None,
        "file": "",
        "layers": [],
    }


def answer(question, tick):
    match question["do"]:
        case "space":
            few = Knob(TEN[: int(os.environ.get("SEARCH_VALUES", "10"))], "0")
            return {"space": space.plain(SPACE | {"b": few}), "sizes": {"train": 1, "validation": 1, "test": 1}}
        case "alive":
            return {"dead": []}
        case "control":
            return judged(0, 0) | {"test": 0.9 if question.get("test") else None, "bits": 3200}
    point = question["point"]
    with Path(os.environ["SEARCH_LOG"]).open("a") as log:
        log.write(f"{os.getpid()} {point['a']} {point['b']} {'test' if question.get('test') else ''}\n")
    time.sleep(float(os.environ.get("SEARCH_DELAY", "0")))
    if (hold := Path(os.environ.get("SEARCH_HOLD", "/nowhere/hold"))).exists():
        with hold.open("a") as log:
            log.write(f"{os.getpid()} {point['a']} {point['b']}\n")
        while hold.exists():
            time.sleep(0.01)
    if os.environ.get("SEARCH_GREED") == f"{point['a']},{point['b']}":
        hoard = bytearray(400 << 20)
        time.sleep(30)
        del hoard
    if (point["a"], point["b"]) in INFEASIBLE:
        return {"infeasible": f"a {point['a']} does not go with b {point['b']}"}
    return judged(**point) | {"test": 0.85 if question.get("test") else None}


if __name__ == "__main__":
    from assay.worker.fresh import serve

    serve(answer)
