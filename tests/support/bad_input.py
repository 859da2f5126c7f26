"""Kinds of bad input: what to write, the command, and what it must say."""

import os
from dataclasses import dataclass, field
from pathlib import Path

TORCH = "import torch\nfrom assay import kernel\n"
GOOD = TORCH + '@kernel("gelu")\ndef honest(x, *, out):\n    out.copy_(torch.nn.functional.gelu(x))\n'
POINT = ("--workload", "n=5,dtype=fp32")


@dataclass(frozen=True)
class Case:
    """Files to write, a command in which `{}` is their folder, and what it must say."""

    command: tuple[str, ...]
    says: tuple[str, ...]
    files: dict = field(default_factory=dict)
    """Name → text, bytes, or a function that makes it."""
    code: int = 2


CASES: dict[str, Case] = {}


def empty(path):
    from assay.store import open_store

    open_store(path).close()


def kind(name, command, *says, code=2, **files):
    named = {n.replace("__", "."): made for n, made in files.items()}
    CASES[name] = Case(tuple(command.split()), says, named, code)


def python(name, text, *says, code=2, more=POINT):
    """A Python file `f.py` to be checked."""
    CASES[name] = Case(("check", "{}/f.py", *more), says, {"f.py": text}, code)


def declared(name, decorator, *says, signature="x, *, out", op="gelu"):
    """A kernel whose decorator, on line 3, is wrong."""
    text = f"{TORCH}@kernel({decorator})\ndef mine({signature}):\n    out.copy_(x)\n"
    CASES[name] = Case(("check", "{}/f.py"), says, {"f.py": text})


def op(name, arguments, *says, reference="x", body="return x", before="", after="", code=2):
    """A user's op, declared on line 4, with a kernel of it; `before` stands on line 3."""
    text = (
        f"import torch\nfrom assay import Attribute, Axis, Tensor, kernel, op\n{before}\n@op({arguments})\n"
        f'def mine({reference}):\n    {body}\n\n@kernel("mine")\ndef honest(x, *, out):\n    out.copy_(x)\n{after}'
    )
    CASES[name] = Case(("check", "{}/f.py"), says, {"f.py": text}, code)


def cuda(name, text, *says, more=("--op", "gelu", "--dtype", "fp32"), code=2):
    CASES[name] = Case(("check", "{}/f.cu", *more), says, {"f.cu": text}, code)


def use(name, command, *says, code=2):
    CASES[name] = Case(tuple(command.split()), says, {}, code)


def made(command):
    """A file that is none: `made(os.mkfifo)`."""
    return lambda path: command(path)


# Files
python("a folder", made(Path.mkdir), "f.py is a folder, not a file", "name the files in it")
python(
    "a link to itself", made(lambda p: p.symlink_to(p.name)), "f.py cannot be read: Too many levels of symbolic links"
)
python("a link to nothing", made(lambda p: p.symlink_to("gone")), "f.py is a link to gone, which is not there")
python("a pipe", made(os.mkfifo), "f.py is a pipe, not a file", "save the source in a file")
python("a device", made(lambda p: p.symlink_to("/dev/zero")), "f.py is a device, not a file")
python("a huge file", made(lambda p: p.touch() or os.truncate(p, 10**9)), "f.py holds 1000 MB", "at most 8 MB")
python("a binary file", bytes(range(256)) * 8, "f.py: this is a binary file", "name a Python or CUDA source")
python("a NUL byte", GOOD.encode() + b"\0\n", "f.py:6: a NUL byte is in the text")
python(
    "Latin-1 without saying so",
    b"# gr\xfc\xdfe\n" + GOOD.encode(),
    "f.py:1: byte 0xfc is no utf-8 text",
    "coding: latin-1",
)
python("an encoding nobody knows", "# -*- coding: klingon -*-\n" + GOOD, "f.py:1: unknown encoding", "coding: utf-8")
python("UTF-16", GOOD.encode("utf-16"), "f.py: this is UTF-16 text", "save it as UTF-8")
python("a syntax error", TORCH + "def f(x:\n", "f.py:3: '(' was never closed: def f(x:", "fix the syntax")
python("tabs and blanks mixed", TORCH + "if 1:\n\ta = 1\n        b = 1\n", "f.py:5: inconsistent use of tabs")
python("brackets without end", "x = " + "(" * 5000 + ")" * 5000, "f.py:1: too many nested parentheses")
python("an empty file", "", "f.py: no kernel in this file", '@kernel("gelu")')
use("a file that is not there", "check {}/gone.py", "no file called", "check the path")
use("a path through a file", f"check {__file__}/x.py", "cannot be read: Not a directory")
use("a name too long", f"check {{}}/{'x' * 300}.py", "cannot be read: File name too long")

# Importing a kernel's file, in its worker
python(
    "a module that is not installed",
    "import nowhere\n" + GOOD,
    "f.py:1",
    "No module named 'nowhere'",
    "pip install nowhere",
    code=1,
)
python("a module that raises", GOOD + "raise ValueError('no')\n", "ValueError: no at", "f.py:6", code=1)
python("a module that exits", GOOD + "raise SystemExit(3)\n", "exit: SystemExit: 3 at", "f.py:6", code=1)
python(
    "a module that hangs",
    "import time\n" + GOOD + "time.sleep(600)\n",
    "timeout: ",
    code=1,
    more=(*POINT, "--timeout", "1"),
)
python(
    "a relative import",
    "from . import x\n" + GOOD,
    "attempted relative import",
    "import the module by its plain name",
    code=1,
)
python(
    "a name that is gone",
    GOOD + "honest = 5\n",
    "f.py:4",
    "honest is not a function of this file once it is imported",
    code=1,
)
kind(
    "a circular import",
    "check {}/f.py " + " ".join(POINT),
    "partially initialized module",
    "into a third one",
    code=1,
    f__py="import g\nfrom g import h\n" + GOOD,
    g__py="from f import honest\nh = 1\n",
)

# CUDA
use("a .cu that is not there", "check {}/gone.cu --op gelu", "no file called", "gone.cu")
cuda("a .cu without an op", "// assay: f<<<1, 1>>>(x)\n", "f.cu: which op does it compute?", "--op gelu", more=())
cuda(
    "a .cu without a launch",
    "__global__ void f() {}\n",
    "f.cu: no launch comment in this file",
    "say how it is launched",
)
cuda("a .cu for an unknown op", "// assay: f<<<1, 1>>>(x)\n", "--op gelo: no op called 'gelo'", more=("--op", "gelo"))
cuda("a launch that is none", "\n// assay: f<T>(x, out, n)\n", "f.cu:2", "this launch comment cannot be read", code=1)
cuda("a launch without a block", "\n// assay: f<T><<<1>>>(x)\n", "f.cu:2", "a launch needs <<<grid, block>>>", code=1)
cuda(
    "a launch of unknown names",
    "// assay: f<T><<<m, 1>>>(x)\n",
    "f.cu:1",
    "names 'm', which the op does not have",
    code=1,
)
cuda("a launch that opens files", "// assay: f<T><<<open('f'), 1>>>(x)\n", "f.cu:1", "may not say `open('f')`", code=1)
cuda(
    "a launch that is no arithmetic",
    "// assay: f<T><<<1 +, 1>>>(x)\n",
    "f.cu:1",
    "this part of the launch comment",
    code=1,
)
cuda(
    "CUDA that does not compile",
    "// assay: f<T><<<1, 1>>>(x)\ntemplate <typename T> __global__ void f(T* x) { oops(); }\n",
    'f.cu(2): error: identifier "oops" is undefined',
    code=1,
)

# Workloads
W = "check gelu/torch --workload"
use("a workload without values", f"{W} n", "'n' in workload 'n' is not name=value", "write it as n=")
use("a size that is no number", f"{W} n=10**10", "n=10**10 in workload 'n=10**10' is no whole number", "in digits")
use("a size below zero", f"{W} n=-1", "n=-1 in workload 'n=-1' is negative")
use("a size no machine has", f"{W} n=1000000000000", "GiB, this machine has", "choose smaller sizes")
use("a size outside the op", "check layernorm/torch --workload rows=3,cols=0", "is outside", "choose another size")
use("an unknown axis", f"{W} n=5,m=2", "gelu has no 'm' (in workload 'n=5,m=2')")
use("an axis twice", f"{W} n=5,n=6", "the workload 'n=5,n=6' says n twice")
use("a workload of no dtype", f"{W} n=5,dtype=f", "assay: no dtype called 'f'")
use("a workload of another dtype", f"{W} n=5,dtype=int8", "gelu is not declared for int8", "one of: fp32")
use("a workload of no values", f"{W} n=5,values=odd", "values=odd: no such kind of values", "one of: normal")
use("a strided input that may not be", f"{W} n=5,strided=x", "gelu: tensor 'x' must be contiguous")
use("without an input that must be", f"{W} n=5,without=x", "gelu: 'x' is not optional")
use("two dtypes that contradict", f"{W} n=5,dtype=bf16 --dtype fp32", "is in bf16, --dtype says fp32", "leave one")

# Commands
use("nothing named", "check", "check what?", "--all")
use(
    "an option given twice",
    "check gelu --dtype fp32 --dtype bf16",
    "--dtype is given 2 times",
    "separated by commas: fp32,bf16",
)
use("a single value given twice", "check gelu --seed 1 --seed 2", "--seed is given 2 times", "it takes one value")
use("an op nobody knows", "check gelo", "assay: no op called 'gelo'", "did you mean gelu")
use("an address nobody knows", "check gelu/jax", "no kernel called 'gelu/jax'", "assay list")
use("a pattern of nothing", "check zz*", "no kernel matches 'zz*'", "quote a pattern")
use("an unknown backend asked for", "check gelu --backend jax", "--backend jax: no such backend", "one of: torch")
use(
    "a backend that is not there",
    "check gelu/torch --backend cuda",
    "none of these kernels is in cuda",
    "they are in torch",
)
use(
    "a dtype that is not declared",
    "check gelu/torch --dtype int8",
    "gelu is not declared for int8",
    "--dtype with one of",
)
use("a parameter without a value", "check gelu/triton --param BLOCK", "--param BLOCK: not name=value", "e.g.")
use("a parameter nobody has", "check gelu/triton --param BLOK=2", "gelu/triton has no tunable 'BLOK'")
use(
    "a parameter of another type",
    "check gelu/triton --param BLOCK=big",
    "--param BLOCK=big: gelu/triton takes int",
    "512",
)
use("an unknown target", "check gelu --target sm90", "no target called 'sm90'")
use("no time at all", "check gelu --timeout 0", "--timeout", "0")
use("no jobs at all", "check gelu --jobs 0", "--jobs")
use("a seed that is no number", "check gelu --seed x", "--seed", "valid integer")
use("an option nobody has", "check gelu --fast", "No such option: --fast")
use("a verb nobody has", "chek gelu", "No such command 'chek'")
use("an axis without sizes", "bench gelu/torch --axis n", "--axis n: not name=sizes")
use("sizes that are none", "bench gelu/torch --axis n=9..1", "'9..1' is not a list of sizes")
use("a sweep along no axis", "bench gelu/torch --axis m=5", "gelu has no axis 'm'", "its axes: n")
use("a sweep that is not there", "bench --sweep {}/gone.toml", "gone.toml", "docs/bench.md")
use("a baseline of no backend", "bench gelu/torch --against jax", "--against jax: no such backend")
use("too few rounds", "bench gelu/torch --rounds 2", "--rounds")
use("nothing to compare with", "inspect diff gelu/torch", "0 kernels to compare", "name two")
use("an unknown compiler", "inspect gelu/cuda --compiler gcc", "no compiler called 'gcc'", "nvrtc")
use("machine code of a CPU", "inspect gelu/cuda --target cpu", "gelu/cuda is not built for cpu")
kind(
    "an older document that is none",
    "inspect since {}/d.json gelu/torch",
    "d.json is no document of inspect",
    d__json="{}",
)
use("an entry of selftest nobody has", "selftest nothing_like_it", "the selftest has no entry called 'nothing_like_it'")

# Records at rest
use("a store that is not there", "history --store {}/gone.sqlite", "no store at", "--import FILE.json")
use(
    "a store that cannot be read", "history --store postgresql://h:x/y", "the store's URL cannot be read", "name a file"
)
use("a store of another kind", "history --store mysql://x/y", "records are not kept in mysql")
use("a store in memory", "history --store sqlite://", "a store in memory would be lost")
kind(
    "a store that is no database",
    "history --store {}/s.sqlite",
    "file is not a database",
    s__sqlite="no database at all\n" * 99,
)
kind(
    "a status nobody has",
    "history --store {}/s.sqlite --status odd",
    "no status 'odd'",
    "one of: pass",
    s__sqlite=empty,
)
kind(
    "a verb nobody has",
    "history --store {}/s.sqlite --verb chek",
    "no verb 'chek' has records",
    "did you mean check",
    "selftest",
    s__sqlite=empty,
)
kind(
    "a moment that is none",
    "history --store {}/s.sqlite --since odd",
    "'odd' is not a time",
    s__sqlite=empty,
)
kind("a run nobody made", "history odd --store {}/s.sqlite", "no run 'odd' in", s__sqlite=empty)
use(
    "an import that is not there",
    "history --import {}/gone.json --store {}/s.sqlite",
    "gone.json: No such file",
    "name a document that --json or --out wrote",
)
kind(
    "an import that is none",
    "history --import {}/d.json --store {}/s.sqlite",
    "d.json is not a document of records: ",
    d__json="[]",
)
use("an import beside a run", "history last --import {}/gone.json", "--import stands alone")
use("a file of no known kind", "history --out {}/all.xls", "records are not written as '.xls'", ".csv")
kind(
    "a comparison of no run",
    "compare odd --store {}/s.sqlite",
    "0 timed runs begin with 'odd'",
    s__sqlite=empty,
)
kind(
    "a comparison before any run",
    "compare --store {}/s.sqlite",
    "no timed run is recorded yet",
    s__sqlite=empty,
)
use("a comparison of no file", "compare {}/a.json {}/b.json", "there is no", "a.json", "assay bench")
kind(
    "a comparison of no times",
    "compare {}/a.json {}/a.json",
    "the old run holds no timed kernel",
    a__json='{"schema": 1, "records": []}',
)
kind(
    "a report of nothing",
    "report --store {}/s.sqlite",
    "no records to report on",
    "assay check",
    s__sqlite=empty,
)
use("a report of no file", "report --from {}/gone.json", "cannot read", "gone.json: No such file")
kind(
    "a report of no records",
    "report --from {}/d.json",
    "d.json is not a document of records",
    "written with --out",
    d__json="{",
)
