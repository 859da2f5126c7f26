"""Nodes of a Ray cluster: how to connect, what they have installed, and how many trials fit on them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from assay.errors import UsageError

_SURVEY = 45.0
"""Seconds within which every node must answer; each starts a process first."""
_NAME_IT = "start one (ray start --head), then name it: --ray auto, --ray HOST:PORT or --ray ray://HOST:10001"


def connect(address: str) -> Any:
    """Return `ray`, connected. Raise UsageError if it cannot connect."""
    import ray

    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as problem:
        raise explained(address, problem) from None
    return ray


def explained(address: str, problem: BaseException) -> UsageError:
    """Return a UsageError that says why Ray does not connect."""
    said = " ".join(f"{problem} {problem.__cause__ or ''}".split())
    if "ersion mismatch" in said:
        what = f"the cluster at {address} has another version of Ray or Python: {said}"
        return UsageError(what, fix="install the same versions of both on all machines, or run the command on a node")
    if "uthentication" in said:
        fix = "RAY_AUTH_MODE=token, and the cluster's token in ~/.ray/auth_token or RAY_AUTH_TOKEN, as on its nodes"
        return UsageError(f"the cluster at {address} asks for a token", fix=fix)
    if "No node info found" in said:
        fix = "ray start --address=HOST:PORT on this machine, or connect as a client: --ray ray://HOST:10001"
        return UsageError(f"this machine is no node of the cluster at {address}", fix=fix)
    if "Starting Ray client server failed" in said:
        fix = "try again, or run the command on a node of the cluster, with --ray auto"
        return UsageError(f"the head of the cluster at {address} could not start a process for this client", fix=fix)
    if address == "auto":
        return UsageError(f"no Ray cluster runs on this machine: {said}", fix="start one: ray start --head")
    return unreachable(address, said)


def unreachable(address: str, why: str) -> UsageError:
    return UsageError(f"no Ray cluster answers at {address}: {why}", fix=_NAME_IT)


def survey() -> Callable[[], dict[str, str]]:
    """Return a function that reports what is installed where it is called. It is nested, so Ray sends it to a node by
    value: the node may have no Assay, or another version."""

    def here() -> dict[str, str]:
        import hashlib
        import platform
        import socket
        from pathlib import Path

        found = {"host": socket.gethostname(), "python": platform.python_version(), "assay": "", "source": ""}
        try:
            import assay
        except ImportError:
            return found
        digest = hashlib.sha256()
        folder = Path(str(assay.__file__)).parent
        for file in sorted(folder.rglob("*.py")):
            digest.update(str(file.relative_to(folder)).encode() + file.read_bytes())
        return found | {"assay": str(getattr(assay, "__version__", "unknown")), "source": digest.hexdigest()[:12]}

    return here


def surveyed(ray: Any) -> list[dict[str, str]]:
    """Return what is installed on each node that can run trials."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

    probe = ray.remote(num_cpus=0, max_retries=0)(survey())
    asked = {
        probe.options(scheduling_strategy=On(node["NodeID"], soft=False)).remote(): node["NodeManagerHostname"]
        for node in ray.nodes()
        if node["Alive"] and node["Resources"].get("CPU")
    }
    done, silent = ray.wait(list(asked), num_returns=len(asked), timeout=_SURVEY) if asked else ([], [])
    if silent:
        hosts = ", ".join(asked[one] for one in silent)
        fix = "see `ray status` and the logs of the node"
        raise UsageError(f"no answer from {hosts} within {_SURVEY:g} s", fix=fix)
    try:
        return [ray.get(one) for one in done]
    except ray.exceptions.RayError as problem:
        raise UsageError(f"a node was lost while it was asked for its versions: {problem}", fix="try again") from None


def verify(nodes: Sequence[Mapping[str, str]], here: Mapping[str, str]) -> None:
    """Raise UsageError for nodes with other versions than `here`: questions or answers might differ."""
    fix = f"there: pip install kernel-assay=={here['assay']}, then restart its Ray"
    for node in nodes:
        host = node["host"]
        if node["python"].split(".")[:2] != here["python"].split(".")[:2]:
            what = f"{host} has Python {node['python']}, this machine {here['python']}"
            raise UsageError(what, fix="install the same Python on all nodes, with Ray and Assay in it")
        if not node["assay"]:
            raise UsageError(f"{host} has no Assay that its Ray can import", fix=fix)
        if node["assay"] != here["assay"]:
            raise UsageError(f"{host} has Assay {node['assay']}, this machine {here['assay']}", fix=fix)
        if node["source"] != here["source"]:
            what = f"{host} has other source files of Assay {here['assay']} than this machine"
            raise UsageError(what, fix="install the same commit there, then restart its Ray")


def share(nodes: Sequence[Mapping[str, float]], workers: int | None, gpu: bool) -> tuple[int, int]:
    """Return the number of concurrent trials and the cores of each: the most with which all of them still run at once.
    On GPUs each trial has one to itself. `nodes`: the resources of each node."""

    def fit(cores: int) -> int:
        places = [(int(node.get("CPU", 0)) // cores, int(node.get("GPU", 0))) for node in nodes]
        return sum(min(cpus, gpus) if gpu else cpus for cpus, gpus in places)

    if not fit(1):
        what = "GPU with a core beside it" if gpu else "core"
        fix = "add a node: ray start --address=HOST:PORT" + " --num-gpus=1" * gpu
        raise UsageError(f"the cluster has no {what} for trials", fix=fix)
    slots = min(workers or fit(1), fit(1))
    most = max(int(node.get("CPU", 0)) for node in nodes)
    return slots, max(cores for cores in range(1, most + 1) if fit(cores) >= slots)
