"""Records to keep, and empty places to keep them in."""

import json
import random
from dataclasses import asdict
from itertools import count

from hypothesis import strategies as st

from assay.record import Record, Status

NUMBER = count()


def fresh(request, kind, tmp_path):
    """In PostgreSQL a schema, not a database: those take a second each."""
    name = f"place_{next(NUMBER)}"
    if kind == "sqlite":
        return str(tmp_path / name / "records.sqlite")
    import psycopg

    url = request.getfixturevalue("server")
    with psycopg.connect(url) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{url}?options=-csearch_path%3D{name}"


def record(kernel="gelu/triton", **more):
    about = {"time": "2026-11-15T05:00:00Z", "commit": "abc1234", "gpu": "NVIDIA H200", "cpu": "Xeon"}
    base = {"verb": "bench", "workload": "n=8,dtype=bf16", "status": Status.PASS, "reason": "", "run": "r1"}
    return Record(**base | {"kernel": kernel, "provenance": about | more.pop("about", {})} | more)


BENCH = record(
    reason="12.3 µs, 1.8× gelu/torch",
    median=12.3e-6,
    interval=(12.2e-6, 12.5e-6),
    samples=[[12.1e-6, 12.3e-6], [12.4e-6]],
    seconds=3.5,
    evidence={
        "device": "cuda",
        "baseline": "gelu/torch",
        "speedup": {"median": 1.8, "interval": [1.79, 1.81]},
        "bytes": 1 << 40,
        "gbps": 4100.5,
        "hot": {"median": 8e-6, "interval": [7e-6, 9e-6], "samples": [[8e-6], [7e-6, 9e-6]]},
        "roofline": {"bound": "memory", "seconds": 1.1e-5, "share": 0.9, "model": "h200"},
        "launches": 1,
        "clocks": {"sm_mhz": 1980.0, "throttle": [], "celsius": 41, "watts": 310},
    },
)


def same(one, other):
    """Equal to the last bit, nan and -0.0 included; the order of names in a dict means nothing."""

    def text(r):
        return json.dumps(asdict(r), sort_keys=True), r.status.__class__, r.interval.__class__

    return text(one) == text(other)


TEXT = st.text(max_size=30)
NUMBERS = st.floats() | st.integers(-(1 << 70), 1 << 70)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
LONG = st.integers(0, 9).map(lambda seed: "".join(map(chr, random.Random(seed).choices(range(0x4E00, 0x9FFF), k=3000))))
"""Longer than PostgreSQL can index, however it packs them."""
RECORDS = st.builds(
    Record,
    verb=TEXT,
    kernel=TEXT | LONG,
    workload=TEXT | LONG,
    status=st.sampled_from(Status),
    reason=TEXT,
    run=TEXT,
    evidence=st.dictionaries(TEXT, JSON, max_size=4),
    replay=TEXT,
    source=st.dictionaries(TEXT, JSON, max_size=2),
    artifacts=st.lists(st.dictionaries(TEXT, JSON, max_size=2), max_size=2),
    provenance=st.dictionaries(TEXT | st.sampled_from(["time", "gpu", "cpu", "commit"]), JSON, max_size=5),
    seconds=st.floats(),
    median=st.none() | st.floats(),
    interval=st.none() | st.tuples(st.floats(), st.floats()),
    samples=st.none() | st.lists(st.lists(st.floats(), max_size=4), max_size=4),
)
