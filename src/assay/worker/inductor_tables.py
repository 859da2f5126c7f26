"""Imported by the zygotes of torch.compile if there is no GPU: its compiler, which takes longer to import than most
kernels take to compile, and the vector instructions of the processor. On a GPU the compiler asks the driver."""

import torch._dynamo
import torch._inductor.compile_fx
import torch._inductor.graph
import torch.export._trace  # with what the first graph would import
import torch.export._unlift  # noqa: F401

from assay.backends import vector_isa

vector_isa.find()
