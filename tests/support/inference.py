"""What the tests of `model infer` share: a model and kernels of a user, and a study without processes."""

import textwrap

import pytest
import torch

from assay.models.studies import study as shared
from assay.models.studies.infer import Effort, Options, child, infer

MODELS = """
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Tiny(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.norm, self.act = nn.Linear(32, 32), nn.LayerNorm(32), nn.GELU()

        def forward(self, x):
            return self.act(self.linear(x)) + F.gelu(self.norm(x))

    class Broken(Tiny):
        def forward(self, x):
            y = self.act(self.linear(x))
            print("a graph ends here")
            return y.relu()

    class Raises(Tiny):
        def forward(self, x):
            return super().forward(x) if len(x) < 9 else self.missing

    def single(): return nn.Sequential(nn.Linear(32, 32), nn.GELU())
    def tiny(): return Tiny()
    def broken(): return Broken()
    def raises(): return Raises()
    def example(batch): return torch.randn(batch, 32)
"""
KERNELS = {
    "tanh": "torch.nn.functional.gelu(x, approximate='tanh')",  # another function, and nearly the same
    "deadly": "os.kill(os.getpid(), 11)",
    "right": "torch.nn.functional.gelu(x)",
}
QUICK = Effort(rounds=6, budget=0.1, passes=3, threads=1, alone_budget=0.1)


@pytest.fixture(scope="module", name="users")
def users_folder(tmp_path_factory):
    """A folder with the user's own model and kernels."""
    folder = tmp_path_factory.mktemp("users")
    (folder / "model.py").write_text(textwrap.dedent(MODELS))
    for name, body in KERNELS.items():
        text = (
            f"import os\nimport torch\nfrom assay import kernel\n\n@kernel('gelu', backend='torch', variant='{name}')\n"
        )
        (folder / f"{name}.py").write_text(f"{text}def gelu(x, *, out):\n    out.copy_({body})\n")
    return folder


@pytest.fixture
def here(in_this_process):
    in_this_process(child, shared, end=child._made.clear)
    with torch._dynamo.config.patch(fail_on_recompile_limit_hit=False, suppress_errors=False):
        yield
    torch._dynamo.reset()


def quick(model, **more):
    given = {"arms": ("eager",), "alone": (), "effort": QUICK, "device": "cpu"} | more
    return list(infer(str(model), Options(**given)))


def by(records, **wanted):
    found = [r for r in records if all(r.evidence.get(k) == v for k, v in wanted.items())]
    assert found, wanted
    return found[0]
