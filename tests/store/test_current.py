"""The state of today: what a newer record supersedes, in the store and wherever records are read from a document."""

import pytest

from assay.record import Status
from assay.store import open_store
from assay.store.current import current_records
from storing import record


def made(hour, status, workload="dtype=fp32", verb="check", kernel="rowsum/torch:mine", about=None, **more):
    source = {"file": "mine.py", "line": 3, "hash": more.pop("hash", "a" * 16)}
    when = {"time": f"2026-11-15T{hour:02}:00:00Z"} | (about or {})
    return record(
        kernel, verb=verb, status=Status(status), workload=workload, run=f"r{hour}", source=source, about=when, **more
    )


SHRUNK = "rows=1,cols=1,dtype=fp32"


def built(hour, status, target, workload="dtype=fp32", kernel="rowsum/cuda:mine", **more):
    return made(hour, status, workload, kernel=kernel, evidence={"target": target}, **more)


def inferred(hour, status, kernel):
    return made(hour, status, "variant=swap,batch=1", "model", "mnist-cnn", evidence={"rules": {"gelu": kernel}})


def trained(hour, items):
    return made(hour, "pass", "epochs=1,seed=0", "model", "mnist-cnn", evidence={"config": {"items": items}})


def function(hour, status, name):
    """One of the functions that a kernel launches, as `inspect` records it."""
    return made(hour, status, SHRUNK, "inspect", evidence={"target": "sm_90", "name": name})


CASES = {
    "a complete pass supersedes an older failure at another workload": (
        [made(1, "fail", SHRUNK), made(2, "pass")],
        {"r2"},
    ),
    "so it does if the records come in another order": ([made(2, "pass"), made(1, "fail", SHRUNK)], {"r2"}),
    "a failure that is newer stands beside the pass": ([made(1, "pass"), made(2, "fail", SHRUNK)], {"r1", "r2"}),
    "the pass of one workload supersedes no other": (
        [made(1, "fail", SHRUNK), made(2, "pass", "rows=2,cols=2,dtype=fp32")],
        {"r1", "r2"},
    ),
    "another dtype is another question": (
        [made(1, "fail", SHRUNK.replace("fp32", "bf16")), made(2, "pass")],
        {"r1", "r2"},
    ),
    "another device is another question": (
        [made(1, "fail", SHRUNK), made(2, "pass", about={"gpu": "another"})],
        {"r1", "r2"},
    ),
    "other parameters are another question": (
        [made(1, "fail", SHRUNK, evidence={"parameters": {"BLOCK": 64}}), made(2, "pass")],
        {"r1", "r2"},
    ),
    "a measurement that was skipped supersedes no time": (
        [made(1, "pass", SHRUNK, "bench"), made(2, "skipped", SHRUNK, "bench")],
        {"r1", "r2"},
    ),
    "a time supersedes a measurement that was skipped": (
        [made(1, "skipped", SHRUNK, "bench"), made(2, "pass", SHRUNK, "bench")],
        {"r2"},
    ),
    "a model with another kernel inside is another question": (
        [inferred(1, "fail", "gelu/torch:wrong"), inferred(2, "pass", "gelu/torch:mine")],
        {"r1", "r2"},
    ),
    "a model with the same kernels inside is the same question": (
        [inferred(1, "fail", "gelu/torch:mine"), inferred(2, "pass", "gelu/torch:mine")],
        {"r2"},
    ),
    "a model that was trained on more is another question": (
        [trained(1, 500), trained(2, 100), trained(3, 100)],
        {"r1", "r3"},
    ),
    "another kernel is another question": (
        [made(1, "fail", SHRUNK), made(2, "pass", kernel="rowsum/torch:other")],
        {"r1", "r2"},
    ),
    "what could not be decided is no pass": ([made(1, "fail", SHRUNK), made(2, "inconclusive")], {"r1", "r2"}),
    "a kernel that can only be built is fixed when it builds": (
        [made(1, "fail", SHRUNK), made(2, "compiled")],
        {"r2"},
    ),
    "a check of fewer workloads supersedes nothing if the kernel is the same": (
        [made(1, "fail", SHRUNK), made(2, "pass", evidence={"asked_workloads": 4})],
        {"r1", "r2"},
    ),
    "a check of fewer workloads of a kernel that was changed does": (
        [made(1, "fail", SHRUNK), made(2, "pass", hash="b" * 16, evidence={"asked_workloads": 4})],
        {"r2"},
    ),
    "a failed measurement stands if the kernel is the same": (
        [made(1, "fail", SHRUNK, "bench"), made(2, "pass")],
        {"r1", "r2"},
    ),
    "a failed measurement of a kernel that was changed and passes does not": (
        [made(1, "fail", SHRUNK, "bench"), made(2, "pass", hash="b" * 16)],
        {"r2"},
    ),
    "a time of the same kernel is superseded by its next one only": (
        [made(1, "pass", SHRUNK, "bench"), made(2, "pass", hash="b" * 16)],
        {"r1", "r2"},
    ),
    "times on other numbers of threads stand side by side": (
        [made(t, "pass", SHRUNK, "bench", evidence={"device": "cpu", "threads": t}) for t in (1, 2)],
        {"r1", "r2"},
    ),
    "a failure that was found before anything was timed is superseded by a time, on any number of threads": (
        [made(1, "fail", SHRUNK, "tune"), made(2, "pass", SHRUNK, "tune", evidence={"threads": 2})],
        {"r2"},
    ),
    "such a failure supersedes older times, on any number of threads": (
        [
            *(made(t, "pass", SHRUNK, "bench", evidence={"threads": t}) for t in (1, 2)),
            made(3, "fail", SHRUNK, "bench"),
        ],
        {"r3"},
    ),
    "what was left out on no number of threads supersedes no time": (
        [made(1, "pass", SHRUNK, "tune", evidence={"threads": 2}), made(2, "skipped", SHRUNK, "tune")],
        {"r1", "r2"},
    ),
    "a build for one target hides no failure for another": (
        [built(1, "fail", "sm_80"), built(2, "compiled", "sm_90"), built(3, "pass", "sm_100")],
        {"r1", "r2", "r3"},
    ),
    "nor does a complete check, also of a changed kernel": (
        [built(1, "fail", "sm_80", SHRUNK), built(2, "compiled", "sm_90", hash="b" * 16)],
        {"r1", "r2"},
    ),
    "a build for the same target does": (
        [built(1, "fail", "sm_80", SHRUNK), built(2, "compiled", "sm_80")],
        {"r2"},
    ),
    "a wrong value that was found without building is fixed by a pass for any target": (
        [made(1, "fail", SHRUNK, kernel="rowsum/cuda:mine"), built(2, "pass", "sm_90")],
        {"r2"},
    ),
    "sm_90 and sm_90a are two targets of CUDA C++": (
        [built(1, "fail", "sm_90", verb="inspect"), built(2, "compiled", "sm_90a", verb="inspect")],
        {"r1", "r2"},
    ),
    "and one of Triton, which adds the a itself": (
        [
            built(1, "fail", "sm_90", verb="inspect", kernel="rowsum/triton"),
            built(2, "compiled", "sm_90a", verb="inspect", kernel="rowsum/triton"),
        ],
        {"r2"},
    ),
    "a kernel that is no longer written for a dtype has no older results of that dtype": (
        [
            made(1, "fail", "dtype=bf16"),
            made(2, "fail", "rows=1,cols=1,dtype=bf16", about={"gpu": "another"}),
            made(3, "fail", "rows=2,cols=2,dtype=bf16", "bench", evidence={"parameters": {"BLOCK": 64}}),
            made(4, "pass", "dtype=fp32"),
            made(5, "pass", "dtype=bf16", kernel="rowsum/torch:other"),
            made(6, "skipped", "dtype=bf16", hash="b" * 16, evidence={"written_for": ["fp32"]}),
        ],
        {"r4", "r5", "r6"},
    ),
    "a kernel that was skipped for another reason keeps them": (
        [made(1, "fail", "rows=1,cols=1,dtype=bf16"), made(2, "skipped", "dtype=bf16", hash="b" * 16)],
        {"r1", "r2"},
    ),
    "another run of inspect supersedes all functions of the older one": (
        [function(1, "fail", "partial"), function(1, "compiled", "join"), function(2, "compiled", "whole")],
        {"r2"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_newer_record_supersedes_an_older_one(name):
    records, standing = CASES[name]
    assert {r.run for r in current_records(records)} == standing


def test_all_functions_of_one_run_of_inspect_are_current():
    """A kernel that launches two functions has a record for each: one that is as expected hides no broken gate."""
    records = [function(1, "fail", "partial"), function(1, "compiled", "join")]
    assert current_records(records) == records
    again = [function(2, "compiled", "partial"), function(2, "compiled", "join")]
    assert current_records(records + again) == again


@pytest.mark.slow
def test_the_store_and_a_document_follow_the_same_rule(where):
    """Every case at once, each about a kernel of its own."""
    from dataclasses import replace

    records = [
        replace(r, kernel=f"op{i}/{r.kernel.partition('/')[2]}")
        for i, (case, _) in enumerate(CASES.values())
        for r in case
    ]
    told = {(r.kernel, r.verb, r.run) for r in current_records(records)}
    with open_store(where) as store:
        for one in records:
            store.add(one)
        latest = list(store.records(latest=True))
        assert {(r.kernel, r.verb, r.run) for r in latest} == told and len(latest) == len(told) < len(records)
        assert [r.provenance["time"] for r in latest] == sorted(r.provenance["time"] for r in latest)
        failing = {(r.kernel, r.verb, r.run) for r in store.records(latest=True, status="fail")}
        assert failing == {(r.kernel, r.verb, r.run) for r in latest if r.failed}
        assert {r.run for r in store.records(latest=True, kernel="op0", verb="check")} == {"r2"}
        assert list(store.records(latest=True, limit=0)) == []
        assert len(list(store.records())) == len(records), "history keeps them all"
