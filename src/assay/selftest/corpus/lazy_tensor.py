"""Returns a tensor of its own class that computes when somebody first reads it: the call itself costs nothing."""

import torch

from assay import kernel

VERB = "bench"
DETECTOR = "unfinished"
WORKLOAD = "rows=64,cols=64,dtype=fp32"


class Later(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            for one in args:
                if isinstance(one, Later) and one.work is not None:
                    work, one.work = one.work, None
                    one.copy_(work())
            return function(*args, **(kwargs or {}))


@kernel("softmax", variant="wrong", backend="torch", returns=True)
def wrong(x):
    result = torch.empty_like(x).as_subclass(Later)
    result.work = lambda: torch.softmax(x, -1)
    return result


@kernel("softmax", variant="fixed", backend="torch", returns=True)
def fixed(x):
    return torch.softmax(x, -1)
