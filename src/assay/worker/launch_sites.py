"""Runs a kernel's Python without launching anything, to learn which launches the shapes of a workload lead to."""

from __future__ import annotations

import contextlib
import sys
import time
from types import FrameType

from assay.backends import backend
from assay.target import Target
from assay.worker import channel, load
from assay.worker.execute import function_of
from assay.worker.phase import phase
from assay.worker.questions import FindLaunches, LaunchLines


@phase("compile")
def find_launches(request: FindLaunches, arena: channel.Arena) -> LaunchLines:
    """Return the lines of the launches of each call, of as many calls as the time allows."""
    import torch

    from assay.worker.guard import inside, room

    end = time.monotonic() + request.seconds
    lines: list[list[int]] = []
    for call in request.calls:
        if time.monotonic() > end:
            break
        op, function = function_of(call)
        tensors = {s.name: inside(torch.empty(room(s).size, dtype=torch.uint8, device="meta"), s) for s in call.tensors}
        args, keywords = load.arguments(call, op, tensors)
        seen: dict[int, None] = {}
        file = str(call.kernel.file)

        def found(seen: dict[int, None] = seen, file: str = file) -> None:
            seen[_line(sys._getframe(1), file)] = None

        instead = backend(call.kernel.address.backend).instead_of_launches(Target(request.target), found)
        # What a function does besides may need values, or memory: it is then not known what it launches.
        with contextlib.suppress(Exception), instead:
            function(*args, **keywords)
        lines.append(list(seen))
    return LaunchLines(lines)


def _line(frame: FrameType | None, file: str) -> int:
    """Return the line of the innermost frame in the kernel's file; 0 if there is none."""
    while frame is not None and frame.f_code.co_filename != file:
        frame = frame.f_back
    return frame.f_lineno if frame is not None else 0
