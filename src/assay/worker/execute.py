"""Inside a worker: run one kernel on one workload several times, or build it, or evaluate the op's reference."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.artifact import Artifact
from assay.backends import backend
from assay.backends.base import Launch
from assay.catalog import library
from assay.dtype import DType, dtype
from assay.isa.ptx import compared
from assay.kernel import Kernel
from assay.op import Op
from assay.target import Target
from assay.worker import channel, load
from assay.worker.failure import describe
from assay.worker.phase import phase, watch_compilers

if TYPE_CHECKING:
    from assay.worker.patches import Patches
    from assay.worker.place import HostPlace
    from assay.worker.settings import Change, Settings

_functions: dict[str, Any] = {}
_places: dict[int, HostPlace] = {}
_trial: int | None = None
"""To which they belong."""
_settings: Settings | None = None
_patches: Patches | None = None
_imported: list[Change] = []
"""Settings that importing a kernel's file changed."""
_forks = 0
_clock, _process, _end = time.perf_counter, os.getpid, os._exit
"""Bound before any kernel's file is imported."""


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_parent=_count_fork)


def _op(message: dict[str, Any]) -> Op:
    """The op by its name and its file: a user's may be called like one of the library's."""
    return library.ops_of(Path(message["op_file"]))[message["op"]]


def function_of(message: dict[str, Any]) -> tuple[Kernel, Op, Any]:
    kernel, op = Kernel.from_dict(message["kernel"]), _op(message)
    number: DType = dtype(message["dtype"])
    key = f"{kernel.identity}/{number}/{op.source}"
    if key not in _functions:
        with phase("import"):
            if not _functions:
                load.prepare(kernel, message["mode"])
            _watch(message)
            assert _settings is not None
            _functions[key] = load.function(kernel, op, number)
            _imported.extend(_settings.restore())
        watch_compilers()
    return kernel, op, _functions[key]


def _watch(message: dict[str, Any]) -> None:
    """Note how the process is set, and bind what looks at a kernel, before the first kernel's file is imported."""
    global _settings, _patches
    if _settings is not None:
        return
    from assay.worker import disturb, place  # noqa: F401
    from assay.worker.patches import Patches
    from assay.worker.settings import Settings

    if message["do"] == "trial" and message["device"] == "cuda":
        disturb.prepare()
    _settings, _patches = Settings(), Patches()


def trial(message: dict[str, Any], arena: channel.Arena) -> dict[str, Any]:
    """Call a kernel once, on buffers that the parent has filled, under the circumstances that `run` names. The parent
    looks at the bytes; what is told here is only what it cannot see."""
    kernel, op, function = function_of(message)
    run, place = message["run"], _place(message, arena)
    with ExitStack() as watching:
        started = watching.enter_context(backend(kernel.address.backend).launched()) if run["first"] else []
        if run["threads"]:
            use_threads(run["threads"])
        answer = _one_run(kernel, op, function, message, place)
    assert _settings is not None and _patches is not None
    changes = [vars(c) | {"when": "importing its file"} for c in _imported]
    changes += [vars(c) | {"when": "the call"} for c in _settings.restore()]
    answer["settings"] = changes + answer.get("settings", [])
    immediates = [n for a in started for n in compared(a.ptx.decode(errors="replace"))]
    return answer | {
        "replaced": _patches.found(),
        "artifacts": summaries(started),
        "compared": list(dict.fromkeys(immediates)),
    }


def _place(message: dict[str, Any], arena: channel.Arena) -> Any:
    """The tensors of one place, made once for all runs of a workload."""
    from assay.worker.place import DevicePlace, FencedPlace, HostPlace

    global _trial
    if _trial != message["trial"]:
        for place in _places.values():
            place.close()
        _places.clear()
        _trial = message["trial"]
    number, memory = message["run"]["place"], arena.view(message["arena"])
    if number not in _places:
        if message["device"] != "cuda":
            _places[number] = HostPlace(message, number, memory)
        elif message["run"]["fence"]:
            _places[number] = FencedPlace(message, number, memory, message["run"]["fence"])
        else:
            _places[number] = DevicePlace(message, number, memory)
    return _places[number]


def summaries(started: list[Artifact]) -> list[dict[str, Any]]:
    """What a record keeps of the code that was started, each once."""
    return [a.summary() for a in {a.text_hash: a for a in started}.values()]


def _one_run(kernel: Kernel, op: Op, function: Any, message: dict[str, Any], place: Any) -> dict[str, Any]:
    tensors = place.tensors
    named = dict(message["attributes"]) | {
        s["name"]: tensors[s["name"]] for s in (*message["outputs"], *message["scratch"])
    }
    args = tuple(tensors[n] if n in message["present"] else None for n in op.inputs)
    keywords = load.keywords(kernel, op, named) | message["parameters"]
    if kernel.launches:
        keywords |= message["axes"]
    call = _on_device if message["device"] == "cuda" else _on_host

    def keep(returned: Any, stream: int) -> None:
        names = [s["name"] for s in message["outputs"]]
        outputs = {s["name"]: output_in(returned, s, names) for s in message["outputs"]} if kernel.returns else None
        place.keep(outputs, stream)

    forks, process, began = _forks, _process(), _clock()
    try:
        returned, seconds, settings = call(kernel, function, args, keywords, message, place, keep)
    except BaseException as error:
        if _process() != process:
            _end(0)
        return {"error": describe(error), "seconds": _clock() - began}
    if _process() != process:
        _end(0)  # a child forked by the kernel ends here
    place.finish()
    outside = ""
    if message["mode"] == "triton-interpret":
        from assay.backends.triton_interpreter import bounds

        outside = bounds.told()
    return {
        "seconds": seconds,
        "read_outside": outside,
        "forks": _forks - forks,
        "returned": "" if returned is None or kernel.returns else _type_name(returned),
        "settings": settings,
    }


_OTHER_STREAM = {
    "name": "torch.cuda.set_stream",
    "before": "the caller's",
    "after": "another",
    "when": "the call",
    "instead": "use `with torch.cuda.stream(...)` and let the caller's stream wait for it",
}
Keep = Callable[[Any, int], None]
Called = tuple[Any, float, list[dict[str, str]]]
"""What was returned, how long it took, and settings of the device that were left changed."""


def _on_host(
    kernel: Kernel, function: Any, args: Any, keywords: Any, message: dict[str, Any], place: Any, keep: Keep
) -> Called:
    from assay.worker.disturb import disturbed

    if message["mode"] == "triton-interpret":
        from assay.backends.triton_interpreter import bounds, launch

        bounds.watch(place.bands())
        launch.most = message["run"]["programs"]
    process, began = _process(), _clock()
    with disturbed(message["run"], message["mode"]):
        returned = backend(kernel.address.backend).invoke(function, args, keywords)
        if _process() == process:
            seconds = _clock() - began
            keep(returned, 0)
        else:
            seconds = 0.0
    return returned, seconds, []


def _on_device(
    kernel: Kernel, function: Any, args: Any, keywords: Any, message: dict[str, Any], place: Any, keep: Keep
) -> Called:
    """On a stream of its own, which nothing orders with the default one. The outputs are copied in the order of that
    stream before anything waits for the device."""
    import torch

    from assay.worker import disturb

    run, usual, ahead = message["run"], *disturb.streams()[:2]
    stream = ahead if run["load"] else usual
    place.load()
    with disturb.on_stream(stream):
        if run["late"]:
            place.delay_inputs([s["name"] for s in message["inputs"]])
        if run["load"]:
            disturb.load(run["load"])
        process, began = _process(), _clock()
        returned = backend(kernel.address.backend).invoke(function, args, keywords)
        seconds = _clock() - began
        settings = []
        if torch._C._cuda_getCurrentRawStream(torch._C._cuda_getDevice()) != stream.cuda_stream:
            settings.append(_OTHER_STREAM)
        if _process() == process:
            keep(returned, stream.cuda_stream)
    return returned, seconds, settings


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

        most: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
        numba.set_num_threads(min(count, most))


def _traced(message: dict[str, Any], device: str) -> list[Launch]:
    """Every instance the kernel would launch on this workload, built for a target. Nothing runs: the tensors have no
    values, and on the device `meta` no memory either, only shapes and addresses."""
    import torch

    from assay.worker.guard import inside, room

    kernel, op, function = function_of(message)
    tensors = {
        s["name"]: inside(torch.empty(room(s).size, dtype=torch.uint8, device=device), s)
        for s in (*message["inputs"], *message["outputs"], *message["scratch"])
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
