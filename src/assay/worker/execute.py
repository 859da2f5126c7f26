"""Inside a worker: run one kernel on one workload several times, or build it, or evaluate the op's reference."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from assay import library
from assay.artifact import Artifact
from assay.backends import backend
from assay.backends.base import Launch
from assay.dtype import DType, dtype
from assay.kernel import Kernel, address
from assay.library.reader import ops_in
from assay.op import Op
from assay.target import Target
from assay.worker import channel, load
from assay.worker.failure import describe

_functions: dict[str, Any] = {}
_ops: dict[Path, dict[str, Op]] = {}
_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_parent=_count_fork)


def _op(message: dict[str, Any]) -> Op:
    """The op by its name and its file: a user's may be called like one of the library's."""
    file = Path(message["op_file"])
    if library.ROOT in file.parents:
        return library.ops()[message["op"]]
    if file not in _ops:
        _ops[file] = ops_in(file)
    return _ops[file][message["op"]]


def function_of(message: dict[str, Any]) -> tuple[Kernel, Op, Any]:
    told = message["kernel"]
    kernel = Kernel(
        address(told["address"]),
        Path(told["file"]) if told["file"] else None,
        told["function"],
        told["line"],
        parameters=tuple(told["parameters"]),
        returns=told["returns"],
        launches=tuple((int(n), t) for n, t in told["launches"]),
    )
    op = _op(message)
    number: DType = dtype(message["dtype"])
    key = f"{kernel.identity}/{number}/{op.source}"
    if key not in _functions:
        if not _functions:
            load.prepare(kernel, message["mode"])
        _functions[key] = load.function(kernel, op, number)
    return kernel, op, _functions[key]


def trial(message: dict[str, Any], arena: channel.Arena) -> dict[str, Any]:
    """Run a kernel as often as `runs` says, each time on chosen values, buffers, bands and poison."""
    from assay.worker.guard import Guarded

    kernel, op, function = function_of(message)
    device, memory = message["device"], arena.view(message["arena"])
    if message["threads"]:
        use_threads(message["threads"])
    sets: dict[int, dict[str, Guarded]] = {}
    results = []
    with ExitStack() as watching:
        started = watching.enter_context(backend(kernel.address.backend).launched())
        for run in message["runs"]:
            if run["buffers"] not in sets:
                everything = (*message["inputs"], *message["outputs"], *message["scratch"])
                sets[run["buffers"]] = {s["name"]: Guarded(s, device) for s in everything if not s.get("alias")}
            tensors = dict(sets[run["buffers"]])
            for spec in message["outputs"]:
                if spec.get("alias"):
                    tensors[spec["name"]] = tensors[spec["alias"]]
            results.append(_one_run(kernel, op, function, message, run, tensors, memory))
            watching.close()  # the first run tells
            if results[-1].get("error"):
                break
    return {"runs": results, "artifacts": summaries(started)}


def summaries(started: list[Artifact]) -> list[dict[str, Any]]:
    """What a record keeps of the code that was started, each once."""
    return [a.summary() for a in {a.text_hash: a for a in started}.values()]


def _one_run(
    kernel: Kernel,
    op: Op,
    function: Any,
    message: dict[str, Any],
    run: dict[str, Any],
    tensors: dict[str, Any],
    memory: memoryview,
) -> dict[str, Any]:
    device, pattern = message["device"], run["bands"]
    aliased = {s["alias"] for s in message["outputs"] if s.get("alias")}
    for guarded in tensors.values():
        guarded.fill_bands(pattern)
    for spec in message["inputs"]:
        values = channel.tensor(memory, spec["at"][run["values"]], tensors[spec["name"]].tensor.dtype, spec["shape"])
        tensors[spec["name"]].put(values)
    for spec in (*message["outputs"], *message["scratch"]):
        if not spec.get("alias"):
            tensors[spec["name"]].poison(spec["poison"][run["poison"]])
    named = dict(message["attributes"]) | {
        s["name"]: tensors[s["name"]].tensor for s in (*message["outputs"], *message["scratch"])
    }
    args = tuple(tensors[n].tensor if n in message["present"] else None for n in op.inputs)
    keywords = load.keywords(kernel, op, named) | message["parameters"]
    if kernel.launches:
        keywords |= message["axes"]
    forks, process, began = _forks, os.getpid(), time.perf_counter()
    try:
        returned = _call(kernel, function, args, keywords, device, tensors if run["late"] else {})
    except BaseException as error:
        if os.getpid() != process:
            os._exit(0)
        return {"error": describe(error), "seconds": time.perf_counter() - began}
    if os.getpid() != process:
        os._exit(0)  # a child forked by the kernel ends here
    seconds = time.perf_counter() - began
    changed, outside = [], []
    for spec in message["inputs"]:
        if spec["name"] in aliased:
            outside.append(tensors[spec["name"]].band_damage(pattern) if not spec.get("strided") else "")
            continue
        inside, beyond = tensors[spec["name"]].input_damage()
        changed.append(inside)
        outside.append(beyond)
    for spec in (*message["outputs"], *message["scratch"]):
        if not spec.get("alias"):
            outside.append(tensors[spec["name"]].band_damage(pattern))
    for spec in message["outputs"]:
        value = tensors[spec["name"]].tensor
        if kernel.returns:
            value = output_in(returned, spec, [s["name"] for s in message["outputs"]])
        channel.tensor(memory, spec["at"][run["index"]], value.dtype, spec["shape"]).copy_(value)
    return {
        "seconds": seconds,
        "changed": [c for c in changed if c],
        "outside": [o for o in outside if o],
        "forks": _forks - forks,
        "returned": "" if returned is None or kernel.returns else _type_name(returned),
    }


def _call(
    kernel: Kernel, function: Any, args: tuple[Any, ...], keywords: dict[str, Any], device: str, late: dict[str, Any]
) -> Any:
    """Call the kernel; on a GPU on a stream of its own, which nothing orders with the default one.
    `late` inputs arrive on that stream only after a while: a kernel on any other stream reads garbage."""
    invoke = backend(kernel.address.backend).invoke
    if device != "cuda":
        return invoke(function, args, keywords)
    import torch

    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    inputs = [g for g in late.values() if g.expected is not None]
    for guarded in inputs:
        guarded.tensor.view(guarded.bits).fill_(0x3B)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        if inputs:
            torch.cuda._sleep(4_000_000)  # about 2 ms
            for guarded in inputs:
                guarded.buffer.copy_(guarded.expected)
        returned = invoke(function, args, keywords)
    torch.cuda.synchronize()
    return returned


def output_in(value: Any, spec: dict[str, Any], names: list[str]) -> Any:
    """One of the outputs that a kernel returned."""
    import torch

    values = value if isinstance(value, tuple | list) else (value,)
    found = values[names.index(spec["name"])] if len(values) == len(names) else None
    if (
        not isinstance(found, torch.Tensor)
        or list(found.shape) != spec["shape"]
        or found.dtype != getattr(torch, spec["dtype"])
    ):
        wanted = f"a {spec['dtype']} tensor of shape {tuple(spec['shape'])} for `{spec['name']}`"
        raise TypeError(f"returned {_type_name(value)}, expected {wanted}")
    return found


def _type_name(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return type(value).__name__ + (f" of shape {tuple(shape)} and {value.dtype}" if shape is not None else "")


def use_threads(count: int) -> None:
    import sys

    import torch

    torch.set_num_threads(count)
    if "numba" in sys.modules:
        import numba

        numba.set_num_threads(min(count, numba.get_num_threads()))


def _traced(message: dict[str, Any], device: str) -> list[Launch]:
    """Every instance the kernel would launch on this workload, built for a target. Nothing runs: the tensors have no
    values, and on the device `meta` no memory either, only shapes and addresses."""
    from assay.worker.guard import Guarded

    kernel, op, function = function_of(message)
    tensors = {
        s["name"]: Guarded(s, device).tensor for s in (*message["inputs"], *message["outputs"], *message["scratch"])
    }
    args = tuple(tensors.get(n) if n in message["present"] else None for n in op.inputs)
    named = dict(message["attributes"]) | {
        s["name"]: tensors[s["name"]] for s in (*message["outputs"], *message["scratch"])
    }
    keywords = load.keywords(kernel, op, named) | message["parameters"]
    if kernel.launches:
        keywords |= message["axes"]
    with backend(kernel.address.backend).tracing(Target(message["target"]), message.get("compiler", "")) as launches:
        function(*args, **keywords)
    return launches


def build(message: dict[str, Any], arena: channel.Arena) -> dict[str, Any]:
    """The launches, and of what was built a summary."""
    return {
        "launches": [
            {"grid": launch.grid, "block": launch.block, "shared": launch.shared, "artifact": launch.artifact.summary()}
            for launch in _traced(message, "cpu")
        ]
    }


def compiled(message: dict[str, Any], arena: channel.Arena) -> dict[str, Any]:
    """The launches, and all that was built: PTX, cubin and intermediate code lie one after another in the arena, each
    as long as `parts` says. The GPU is hidden: building is the same with and without one."""
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    message = message | {"mode": "build"}
    told: list[dict[str, Any]] = []
    pieces: list[bytes] = []
    for launch in _traced(message, "meta"):
        a = launch.artifact
        parts = {"ptx": a.ptx, "cubin": a.cubin} | {f"ir.{name}": text.encode() for name, text in a.ir.items()}
        pieces += parts.values()
        sizes = {name: len(data) for name, data in parts.items()}
        where = {"grid": launch.grid, "block": launch.block, "shared": launch.shared}
        told.append(where | {"artifact": a.summary(), "parts": sizes})
    whole = b"".join(pieces)
    arena.view(len(whole))[: len(whole)] = whole
    return {"launches": told}


def reference(message: dict[str, Any], arena: channel.Arena) -> dict[str, Any]:
    """The op's reference in the workload's dtype on this worker's device: plain PyTorch's own answer."""
    import torch

    backend("torch").prepare("native")
    op, memory = _op(message), arena.view(message["arena"])
    for index in range(message["variations"]):
        drawn = {
            s["name"]: channel.tensor(memory, s["at"][index], getattr(torch, s["dtype"]), s["shape"]).to(
                message["device"]
            )
            for s in message["inputs"]
        }
        results = op.reference(*(drawn.get(n) for n in op.inputs), **message["attributes"])
        results = results if isinstance(results, tuple) else (results,)
        for spec, result in zip(message["outputs"], results, strict=True):
            channel.tensor(memory, spec["at"][index], getattr(torch, spec["dtype"]), spec["shape"]).copy_(result)
    return {}
