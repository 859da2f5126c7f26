"""Imported by the zygotes of torch.compile where there is no GPU: its compiler, which takes longer to import than most
kernels take to compile, which vector instructions the processor has, and what the first compilation fills: patterns,
lowerings, decompositions. On a GPU the compiler asks the driver."""

import torch._dynamo
import torch._inductor.compile_fx
import torch._inductor.graph
import torch.export._trace  # with what the first graph would import
import torch.export._unlift
from torch._dynamo.utils import counters

from assay.backends import vector_isa

vector_isa.find()
torch.compile(torch.mm, dynamic=True)(torch.zeros(3, 4), torch.zeros(4, 5))  # a call into aten: no C++ is compiled
torch._dynamo.reset()
counters.clear()
