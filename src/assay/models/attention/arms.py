"""The ways to compute attention that are compared, and how to know that PyTorch took the one it was asked for."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.errors import AssayError

if TYPE_CHECKING:
    import torch

    Attend = Callable[..., torch.Tensor]
    """Of q, k, v and whether it is causal."""

NAIVE = "naive"
ARMS = {
    "naive": "attention/torch:naive",
    "compiled": "attention/inductor:naive",
    "math": "attention/torch:math",
    "flash": "attention/torch:flash",
    "efficient": "attention/torch:efficient",
    "cudnn": "attention/torch:cudnn",
}
"""By the name a user gives: the address in records. All but the first two are backends of PyTorch's own
scaled_dot_product_attention."""
WRITES_SCORES = ("naive", "compiled", "math")
"""Arms that may hold seq × seq scores."""
_BACKENDS = {
    "math": ("MATH", "_scaled_dot_product_attention_math", "math"),
    "flash": ("FLASH_ATTENTION", "_scaled_dot_product_flash_attention", "flash"),
    "efficient": ("EFFICIENT_ATTENTION", "_scaled_dot_product_efficient_attention", "memory efficient"),
    "cudnn": ("CUDNN_ATTENTION", "_scaled_dot_product_cudnn_attention", "cudnn"),
}
"""Its SDPBackend, how the operator begins that then runs, and the heading over the reasons not to."""


class Refusal(AssayError):
    """This way is not for this device, format or shape; `what` is the library's own reason."""


@dataclass(frozen=True)
class Way:
    name: str
    attend: Attend
    around: Callable[[], AbstractContextManager[Any]] = nullcontext
    """What must be in force while it is called."""


def naive(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    """softmax(q kᵀ / √d) v, as it stands in the book: scores and probabilities are written down in full."""
    import torch

    scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(q.shape[-1]))
    if causal:
        later = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(later, -math.inf)
    return scores.softmax(-1) @ v


def fused(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    import torch

    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)


def way(name: str) -> Way:
    import torch

    if name == NAIVE:
        return Way(name, naive)
    if name == "compiled":
        from torch._dynamo.utils import counters

        torch._dynamo.reset()  # one shape, one compilation: never the quiet fall back to eager after eight
        counters.clear()
        return Way(name, torch.compile(naive, fullgraph=True, dynamic=False))
    from torch.nn.attention import SDPBackend, sdpa_kernel

    backend = getattr(SDPBackend, _BACKENDS[name][0])
    return Way(name, fused, lambda: sdpa_kernel(backend))


def first_call(chosen: Way, inputs: tuple[torch.Tensor, ...], causal: bool) -> torch.Tensor:
    """Raises Refusal where the library will not."""
    import torch

    with warnings.catch_warnings(record=True) as caught, chosen.around():
        warnings.simplefilter("always")
        try:
            return chosen.attend(*inputs, causal)
        except torch.OutOfMemoryError as error:
            raise Refusal(str(error).partition(". ")[0]) from None
        except RuntimeError as error:
            if "can't allocate memory" in str(error):  # the CPU's own words for it
                raise Refusal(str(error).splitlines()[0]) from None
            if chosen.name not in _BACKENDS:
                raise
            said = why_not(chosen.name, [str(w.message) for w in caught])
            raise Refusal("; ".join(said) or str(error).splitlines()[0]) from None


def why_not(name: str, warned: list[str]) -> list[str]:
    """PyTorch's own reasons not to use a backend. They come as warnings, those of every backend one after the other,
    each under a heading; the error after them says only that none was left."""
    said, mine = [], False
    for text in warned:
        plain = text.partition(" (Triggered internally")[0].strip()
        if "not used because" in plain:
            mine = plain.lower().startswith(_BACKENDS[name][2])
        elif mine:
            said.append(plain)
    return list(dict.fromkeys(said))


def operators(chosen: Way, inputs: tuple[torch.Tensor, ...], causal: bool) -> list[str]:
    """What ran, by the profiler. Raises AssayError if a backend was asked for and another one answered."""
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile, chosen.around():
        chosen.attend(*inputs, causal)
    ran = list(dict.fromkeys(e.name for e in profile.events() or [] if "::" in e.name))
    wanted = _BACKENDS[chosen.name][1] if chosen.name in _BACKENDS else ""
    if not any(name.partition("::")[2].startswith(wanted) for name in ran):
        raise AssayError(f"{chosen.name} was asked for, but what ran was {', '.join(ran) or 'nothing'}")
    return [name for name in ran if "attention" in name]
