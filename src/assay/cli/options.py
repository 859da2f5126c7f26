"""Options that several verbs have, and their parsing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from assay.cli.session import awaiting
from assay.host import compile_with, include_from, use

What = Annotated[
    list[str] | None, typer.Argument(help="Ops (gelu), addresses (gelu/triton, 'gelu/*'), or files (my.py, my.cu).")
]
All = Annotated[bool, typer.Option("--all", help="Every kernel of the library.")]
OpName = Annotated[str | None, typer.Option("--op", help="The op of the bare .cu files that do not name it.")]
DTypes = Annotated[str, typer.Option("--dtype", help="fp32,bf16,fp16; default: all the op declares.")]
OneWorkload = Annotated[
    str, typer.Option("--workload", help="This one alone, as a record prints it: 'n=5,dtype=bf16'.")
]
Count = Annotated[
    int | None,
    typer.Option(
        "--workloads",
        min=1,
        help="How many to plan, besides some that always run; default 150, fewer where interpreted.",
    ),
]
Thorough = Annotated[bool, typer.Option("--thorough", help="Eight times as many workloads, larger ones too.")]
Limit = Annotated[
    float | None, typer.Option("--limit", min=0.1, help="Seconds for the whole run; says what it leaves out.")
]
Backends = Annotated[str, typer.Option("--backend", help="Only these languages: triton,cuda.")]
TargetName = Annotated[
    str, typer.Option("--target", help="What to build for where nothing can run: sm_80, sm_90, sm_90a, …")
]
Timeout = Annotated[
    float, typer.Option("--timeout", min=0.1, help="Seconds of its own time that a kernel may take for one call.")
]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Kernels side by side.")]
Seed = Annotated[int, typer.Option("--seed", help="Of the fuzzing.")]
Param = Annotated[list[str] | None, typer.Option("--param", help="A tunable: BLOCK=2048. May be repeated.")]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json",
        callback=lambda wanted: awaiting("json", wanted),
        help="One machine-readable document on stdout, nothing else.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", callback=lambda path: awaiting("out", path), help="Also write that document to a file."),
]
JUnit = Annotated[
    Path | None,
    typer.Option(
        "--junit",
        callback=lambda path: awaiting("junit", path),
        help="Also write a JUnit file, which CI services read.",
    ),
]
"""All three are noted, because they are written even if the command is refused before it has a record."""
Strict = Annotated[bool, typer.Option("--strict", help="What was not run counts as a failure.")]
Device = Annotated[
    str,
    typer.Option(
        "--device", callback=lambda text: use(text), help="cpu, cuda or cuda:1; default: a GPU if there is one."
    ),
]
"""The environment is set as soon as the option is read, so that everything started later sees only that device."""
Compiler = Annotated[str, typer.Option("--compiler", help="Of CUDA C++: nvrtc or nvcc.")]
ChosenCompiler = Annotated[
    str, typer.Option("--compiler", callback=lambda name: compile_with(name), help="Of CUDA C++: nvrtc or nvcc.")
]
"""Set in the environment like the device, where every worker finds it. For verbs that run kernels."""
Include = Annotated[
    list[str] | None,
    typer.Option("-I", callback=lambda names: include_from(names), help="A folder of headers. May be repeated."),
]
"""Set in the environment like the compiler."""
FirstDType = Annotated[str, typer.Option("--dtype", help="fp32,bf16,fp16; default: the first the op declares.")]


def split(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (t.strip() for t in text.split(","))))


def parameters(texts: list[str]) -> dict[str, Any]:
    import ast

    from assay.errors import UsageError

    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--param {text}: not name=value", fix="e.g. --param BLOCK=2048")
        try:
            values[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            values[name] = value
    return values
