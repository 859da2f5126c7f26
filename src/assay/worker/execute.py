"""Inside a worker: calls a kernel on a workload, builds it, or evaluates the op's reference."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from assay.artifact import Artifact
from assay.backends import backend, triton_autotuning
from assay.backends.base import Launch
from assay.catalog import library
from assay.dtype import dtype
from assay.isa.ptx import compared
from assay.op import Op
from assay.target import Target
from assay.worker import channel, delays, kept_code, load
from assay.worker.phase import phase, watch_compilers
from assay.worker.questions import Build, Built, Change, Compile, Done, Evaluate, Launched, Summary, Tried, Try
from assay.worker.request import Call, TensorSpec

if TYPE_CHECKING:
    from assay.worker.patches import Patches
    from assay.worker.place import HostPlace
    from assay.worker.settings import Settings

_functions: dict[str, Any] = {}
_places: dict[int, HostPlace] = {}
_trial: int | None = None
"""The trial that `_places` belong to."""
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


def function_of(call: Call, loaded: bool = False, kind: str = "") -> tuple[Op, Any]:
    """Return the op and the kernel's function, whose file is imported on the first request. `loaded`: the GPU may be
    kept busy during calls. `kind`: the kind of delays in its code, if any."""
    kernel, op = call.kernel, load.op_of(call)
    key = f"{kernel.identity}/{call.dtype}/{op.source}"
    if key not in _functions:
        with phase("import"):
            if not _functions:
                load.prepare(kernel, call.mode)
            _watch(loaded)
            kept_code.forget(kernel)
            if kind:
                delays.install(kernel.address.backend, kind)
            assert _settings is not None
            _functions[key] = load.function(kernel, op, dtype(call.dtype))
            _imported.extend(_settings.restore("importing its file"))
        watch_compilers()
    return op, _functions[key]


def _watch(loaded: bool) -> None:
    """Record the settings of the process and bind what observes a kernel, before any kernel's file is imported."""
    global _settings, _patches
    if _settings is None:
        from assay.worker import disturb, place  # noqa: F401
        from assay.worker.patches import Patches
        from assay.worker.settings import Settings

        if loaded:
            disturb.prepare()
        _settings, _patches = Settings(), Patches()


def trial(request: Try, arena: channel.Arena) -> Tried:
    """Call a kernel once, on buffers that the parent has filled, under the circumstances of the request. The parent
    reads the bytes; the answer has only what it cannot see."""
    from assay.worker import disturb

    kernel = request.call.kernel
    op, function = function_of(request.call, request.device == "cuda", request.delays)
    if kernel.address.backend == "triton":
        triton_autotuning.patch()
    place = _place(request, arena)
    assert _settings is not None and _patches is not None
    with ExitStack() as watching:
        started = watching.enter_context(backend(kernel.address.backend).launched()) if request.first else []
        args, keywords = load.arguments(request.call, op, place.tensors)

        def call() -> _Called:
            if request.thread and request.device == "cuda":
                disturb.use_device()
            if request.threads:
                use_threads(request.threads)
            return _called(request, function, args, keywords, place)

        try:
            called = disturb.in_a_thread(call) if request.thread else call()
            place.finish()
        finally:
            changes = _settings.restore("the call")
    immediates = [n for a in started for n in compared(a.ptx.decode(errors="replace"))]
    return Tried(
        called.seconds,
        called.forks,
        *_interpreted(request),
        "" if called.returned is None or kernel.returns else _type_name(called.returned),
        [*_imported, *changes, *called.settings],
        _patches.replaced(),
        summaries(started),
        list(dict.fromkeys(immediates)),
        called.alias,
        delays.codes(),
    )


def _interpreted(request: Try) -> tuple[str, int, int]:
    """Return what the interpreter saw of the call: its reads outside the tensors, its work and its programs."""
    if request.call.mode != "triton-interpret":
        return "", 0, 0
    from assay.backends.triton_interpreter import bounds, work

    return bounds.reads_outside(), work.done, work.programs


def _place(request: Try, arena: channel.Arena) -> Any:
    """Return the tensors of one place, made once for all runs of a workload."""
    from assay.worker.place import DevicePlace, FencedPlace, HostPlace

    global _trial
    if _trial != request.trial:
        for place in _places.values():
            place.close()
        _places.clear()
        _trial = request.trial
    number, memory = request.place, arena.view(request.call.arena)
    if number not in _places:
        kind = HostPlace if request.device != "cuda" else FencedPlace if request.fence else DevicePlace
        _places[number] = kind(request, memory)
    return _places[number]


def summaries(started: list[Artifact]) -> list[Summary]:
    """Return what a record keeps of the code that was started, each piece once."""
    return [_summary(a) for a in {a.text_hash: a for a in started}.values()]


def _summary(artifact: Artifact) -> Summary:
    return cast(Summary, artifact.summary())


_OTHER_STREAM = Change(
    "torch.cuda.set_stream",
    "the caller's",
    "another",
    "use `with torch.cuda.stream(...)` and let the caller's stream wait for it",
    "the call",
)


@dataclass(frozen=True)
class _Called:
    returned: Any
    seconds: float
    forks: int
    settings: tuple[Change, ...] = ()
    """Settings of the device that were left changed."""
    alias: str = ""


def _called(request: Try, function: Any, args: Any, keywords: Any, place: Any) -> _Called:
    """Call the kernel and copy its outputs at once. A child that the kernel forks ends when it returns here."""
    outputs, kernel = request.call.outputs, request.call.kernel
    names = [spec.name for spec in outputs]
    alias = ""

    def invoke(stream: int) -> tuple[Any, float]:
        began = _clock()
        returned = backend(kernel.address.backend).invoke(function, args, keywords)
        seconds = _clock() - began
        if _process() == process:
            held = {spec.name: output_in(returned, spec, names) for spec in outputs} if kernel.returns else None
            if held is not None:
                nonlocal alias
                alias = _alias(held, dict(zip((spec.name for spec in request.call.inputs), args, strict=False)))
            place.keep(held, stream)
        return returned, seconds

    forks, process = _forks, _process()
    try:
        call = _on_device if request.device == "cuda" else _on_host
        returned, seconds, settings = call(request, place, invoke)
    finally:
        if _process() != process:
            _end(0)
    return _Called(returned, seconds, _forks - forks, settings, alias)


Invoke = Callable[[int], tuple[Any, float]]
"""Calls the kernel, copies its outputs in the order of a stream, and returns what it returned and its seconds."""
Result = tuple[Any, float, tuple[Change, ...]]


def _on_host(request: Try, place: Any, invoke: Invoke) -> Result:
    from assay.worker.disturb import disturbed

    if request.call.mode == "triton-interpret":
        from assay.backends.triton_interpreter import bounds, launch, work

        bounds.watch(place.bands())
        work.watch()
        launch.most = request.programs
    with disturbed(request):
        return *invoke(0), ()


def _on_device(request: Try, place: Any, invoke: Invoke) -> Result:
    """Call the kernel on a stream of its own, which nothing orders with the default one. The outputs are copied in the
    order of that stream before anything waits for the device."""
    import torch

    from assay.worker import disturb

    usual, ahead = disturb.streams()[:2]
    stream = ahead if request.load else usual
    place.load()
    with disturb.on_stream(stream):
        if request.late:
            place.delay_inputs([spec.name for spec in request.call.inputs], wait=request.late == "arrived")
        if request.load:
            disturb.load(request.load)
        disturb.leave(request.shared)  # last: other processes use the device too and leave other contents
        returned, seconds = invoke(stream.cuda_stream)
        same = torch._C._cuda_getCurrentRawStream(torch._C._cuda_getDevice()) == stream.cuda_stream
    return returned, seconds, () if same else (_OTHER_STREAM,)


_held: dict[str, Any] = {}
"""Values returned by the last call, kept as a caller would keep them."""


def _alias(returned: dict[str, Any], inputs: dict[str, Any]) -> str:
    """Describe what else has a returned tensor's memory, an input or the result of the call before; else empty."""
    known = [(f"`{name}`", tensor) for name, tensor in inputs.items()]
    known += [("the result of the call before, which a caller may still hold", tensor) for tensor in _held.values()]
    by_address = {t.untyped_storage().data_ptr(): what for what, t in known if hasattr(t, "untyped_storage")}
    _held.clear()
    _held.update(returned)
    for name, tensor in returned.items():
        if tensor.numel() and (what := by_address.get(tensor.untyped_storage().data_ptr())):
            return f"the returned `{name}` has the memory of {what}"
    return ""


def output_in(value: Any, spec: TensorSpec, names: list[str]) -> Any:
    """Return one of the outputs that a kernel returned. Raise TypeError if it is not a tensor as declared."""
    import torch

    values = value if isinstance(value, tuple | list) else (value,)
    output = values[names.index(spec.name)] if len(values) == len(names) else None
    if not isinstance(output, torch.Tensor) or (output.shape, output.dtype) != (spec.shape, getattr(torch, spec.dtype)):
        wanted = f"a {spec.dtype} tensor of shape {spec.shape} for `{spec.name}`"
        raise TypeError(f"returned {_type_name(value)}, expected {wanted}")
    return output


def _type_name(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return type(value).__name__ + (f" of shape {tuple(shape)} and {value.dtype}" if shape is not None else "")


def use_threads(count: int) -> None:
    import sys

    import torch

    torch.set_num_threads(count)
    if "numba" in sys.modules:
        import numba

        most: int = numba.config.NUMBA_NUM_THREADS
        numba.set_num_threads(min(count, most))


def _traced(call: Call, target: str, compiler: str, device: str) -> list[Launch]:
    """Return every instance that the kernel would launch on this workload, built for a target. Nothing runs: the
    tensors have no values, and on the device `meta` no memory either, only shapes and addresses."""
    import torch

    from assay.worker.guard import inside, room

    op, function = function_of(call)
    tensors = {s.name: inside(torch.empty(room(s).size, dtype=torch.uint8, device=device), s) for s in call.tensors}
    args, keywords = load.arguments(call, op, tensors)
    with backend(call.kernel.address.backend).tracing(Target(target), compiler) as launches:
        function(*args, **keywords)
    return launches


@phase("compile")
def build(request: Build, arena: channel.Arena) -> Built:
    """Return the launches, with a summary of what was built."""
    return Built([_launched(launch) for launch in _traced(request.call, request.target, "", "cpu")])


def _launched(launch: Launch, parts: dict[str, int] | None = None) -> Launched:
    grid, block, artifact = list(launch.grid), list(launch.block), _summary(launch.artifact)
    return Launched(grid, block, launch.shared, artifact, parts or {}, launch.cluster)


@phase("compile")
def compiled(request: Compile, arena: channel.Arena) -> Built:
    """Return the launches, and put all that was built into the arena: PTX, cubin and intermediate code, one after
    another, with the lengths in `parts`. The GPU is hidden, so that building is the same with and without one."""
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    launches: list[Launched] = []
    pieces: list[bytes] = []
    for launch in _traced(replace(request.call, mode="build"), request.target, request.compiler, "meta"):
        a = launch.artifact
        parts = {"ptx": a.ptx, "cubin": a.cubin} | {f"ir.{name}": text.encode() for name, text in a.ir.items()}
        pieces += parts.values()
        launches.append(_launched(launch, {name: len(data) for name, data in parts.items()}))
    whole = b"".join(pieces)
    arena.view(len(whole))[: len(whole)] = whole
    return Built(launches)


def reference(request: Evaluate, arena: channel.Arena) -> Done:
    """Evaluate the op's reference in the workload's dtype on the device of the request: plain PyTorch's own answer."""
    import torch

    backend("torch").prepare("native")
    torch._C._set_mkldnn_enabled(request.vendor)
    torch.backends.cudnn.enabled = request.vendor
    op, memory = library.ops_of(Path(request.op_file))[request.op], arena.view(request.arena)
    for index in range(len(request.outputs[0].at)):
        drawn = {spec.name: spec.values(memory, index).to(request.device) for spec in request.inputs}
        with torch.device(request.device):  # for what it makes itself, such as torch.arange(n)
            results = op.reference(*(drawn.get(n) for n in op.inputs), **request.attributes)
        results = results if isinstance(results, tuple) else (results,)
        for spec, result in zip(request.outputs, results, strict=True):
            spec.values(memory, index).copy_(result)
    return Done()
