"""Writes the tables of examples/README.md from the examples themselves.

python tools/examples.py            write them
python tools/examples.py --check    fail if they are not what this would write
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from assay.catalog.reader import kernels_in

FOLDER = Path(__file__).parents[1] / "examples"
PAGE = FOLDER / "README.md"
BEGIN, END = "<!-- tools/examples.py -->\n", "<!-- end -->\n"
LANGUAGES = {"cuda": "CUDA C++", "triton": "Triton", "numba": "Numba, CUDA", "njit": "Numba, CPU"}
GROUPS = {
    "Matrix products": "matmul_square matmul_tall_skinny matmul_batched matmul_transposed_a matmul_transposed_b "
    "matmul_upper_triangular matmul_diagonal matmul_4d matvec",
    "Convolutions and pools": "conv1d conv2d_depthwise conv2d_pointwise conv2d_dilated conv_transpose1d max_pool2d "
    "avg_pool1d global_avg_pool",
    "Norms": "batch_norm group_norm instance_norm l1_norm l2_norm frobenius_norm",
    "Reductions": "sum_over_axis mean_over_axis min_over_axis product_over_axis argmin max_with_indices any_all",
    "Losses": "mse_loss cross_entropy kl_divergence huber_loss hinge_loss triplet_loss cosine_similarity",
    "Cumulative": "cumsum masked_cumsum cumsum_reverse cumsum_exclusive cumprod",
    "Activations": "relu elu selu hardsigmoid softplus softsign sigmoid log_softmax",
    "Lookups and atomics": "embedding gather scatter_add bincount searchsorted",
    "Formats, layouts, chance": "int4_dequantize int4_packed fp8_cast greater int16_saturating_add scale_into_view "
    "dropout",
}


def tables() -> str:
    """Return a table for each group, with the problem, its languages, and the description from the mistake's file."""
    grouped = {name: group.split() for name, group in GROUPS.items()}
    there, listed = {p.stem for p in FOLDER.glob("*.py")}, {n for names in grouped.values() for n in names}
    if there != listed:
        sys.exit(f"in no group of tools/examples.py, or in no file: {', '.join(sorted(there ^ listed))}")
    lines = [f"{len(there)} problems, {sum(len(_backends(n)) for n in there)} honest kernels.\n"]
    for title, names in grouped.items():
        lines += [f"### {title}\n", "| problem | language | the planted mistake |", "|---|---|---|"]
        lines += [f"| [{n}]({n}.py) | {_languages(n)} | [{_first(n)}](mistakes/{n}.py) |" for n in names]
        lines.append("")
    return "\n".join(lines)


def _backends(name: str) -> list[str]:
    return [k.address.backend for k in kernels_in(FOLDER / f"{name}.py")]


def _languages(name: str) -> str:
    return "; ".join(LANGUAGES[b] for b in _backends(name))


def _first(name: str) -> str:
    """Return the first paragraph of a mistake's docstring."""
    described = ast.get_docstring(ast.parse((FOLDER / "mistakes" / f"{name}.py").read_text())) or ""
    return described.partition("\n\n")[0].replace("\n", " ")


def main() -> None:
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    text = before + BEGIN + tables() + END + after
    if "--check" in sys.argv:
        if page != text:
            sys.exit("examples/README.md is not what the examples give: run `python tools/examples.py`")
        return
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
