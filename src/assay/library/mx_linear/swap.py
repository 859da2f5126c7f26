"""Linear layers, which mx_linear takes over as whole modules: their weights are packed first (docs/packed.md)."""

from assay.swappable import Module, Swappable


def limit(module):
    from torch.nn.modules.linear import NonDynamicallyQuantizableLinear

    own = isinstance(module, NonDynamicallyQuantizableLinear)
    return "nn.MultiheadAttention reads its weight without calling it" if own else ""


declared = Swappable(
    ops=("linear",),
    modules={"torch.nn.Linear": Module(None, limit=limit)},
    lookalikes={"transformers.*.Conv1D": Module(None, limit=lambda module: "Conv1D holds its weight transposed")},
    # On an H200 Triton's mx_linear is ahead of CUDA's in every workload of results/h200/mx.json.
    prefer={"mx_linear": "triton"},
)
