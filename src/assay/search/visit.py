"""A first visit to a cluster, in a process of its own: Ray may wait for minutes, deaf to signals, for an address that
does not answer. Tells what each node has installed."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from assay.errors import UsageError

_PROBE = 45.0
"""Seconds in which every node must have answered: each starts a process first."""
_NODE_HERE = (
    "start a node on this machine (ray start --address=HOST:PORT), or connect as a client: --ray ray://HOST:10001"
)


def package() -> Any:
    """Ray itself."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a cluster that is started here reports to nobody
    try:
        import ray
    except ModuleNotFoundError:
        raise UsageError("a search on a cluster needs Ray", fix="pip install 'kernel-assay[cluster]'") from None
    return ray


def connect(address: str) -> Any:
    """Ray, connected. What keeps it from that is a UsageError."""
    import logging

    ray = package()
    own = {"include_dashboard": False} if address == "local" else {}
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **own)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as problem:
        raise explained(address, problem) from None
    return ray


def explained(address: str, problem: BaseException) -> UsageError:
    """Why Ray does not connect."""
    said = " ".join(str(problem).split())
    if "ersion mismatch" in said:
        what = f"the cluster at {address} has another version of Ray or Python: {said}"
        return UsageError(what, fix="install the same versions of both on all machines, or run the command on a node")
    if "node" in said and ("address.json" in said or "raylet" in said.lower()):
        return UsageError(f"this machine is no node of the cluster at {address}", fix=_NODE_HERE)
    if address == "auto":
        return UsageError(f"no Ray cluster runs on this machine: {said}", fix="start one: ray start --head")
    return UsageError(f"no Ray cluster answers at {address}: {said}", fix=_FIX)


_FIX = "start one (ray start --head), then name it: --ray auto, --ray HOST:PORT or --ray ray://HOST:10001"


def unreachable(address: str, why: str) -> UsageError:
    return UsageError(f"no Ray cluster answers at {address}: {why}", fix=_FIX)


def survey() -> Callable[[], dict[str, str]]:
    """A function that says what is installed where it is called. Being made inside another one it travels to a node as
    code: a node may have no Assay, or another one."""

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


def answer(question: dict[str, Any], tick: Any) -> dict[str, Any]:
    """Host, Python and Assay of each node that can do trials."""
    ray = connect(question["address"])
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

    nodes = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
    probe = ray.remote(num_cpus=0, max_retries=0)(survey())
    asked = {
        probe.options(scheduling_strategy=On(node["NodeID"], soft=False)).remote(): node["NodeManagerHostname"]
        for node in nodes
    }
    done, silent = ray.wait(list(asked), num_returns=len(asked), timeout=_PROBE) if asked else ([], [])
    if silent:
        hosts = ", ".join(asked[one] for one in silent)
        raise UsageError(f"no answer from {hosts} within {_PROBE:g} s", fix="see `ray status` and the logs of the node")
    return {"nodes": [ray.get(one) for one in done]}


if __name__ == "__main__":
    from assay.worker.fresh import serve

    serve(answer)
