"""Kinds of bad input: declarations of kernels and of ops."""

from bad_input import GOOD, TORCH, declared, kind, op, python

# Declarations of kernels
declared("an op that is no text", "5", "f.py:3: op=5 in @kernel is not the name of an op", 'e.g. "gelu"')
declared("an op with odd characters", '"ge lu"', "f.py:3: op='ge lu': a part of an address", '"ge_lu"')
declared("no op at all", "", "f.py:3: @kernel() does not say which op", '@kernel("gelu")')
declared("two values without names", '"gelu", "triton"', "f.py:3: @kernel takes the op's name", "it was given 2 values")
declared("a name instead of a literal", "OP", "f.py:3: @kernel takes literals, and constants of its module")
declared("arguments unpacked", '"gelu", **{}', "f.py:3: @kernel(**…) cannot be read without running")
declared("an unknown parameter", '"gelu", tunes={}', "f.py:3: @kernel has no parameter 'tunes'", "did you mean tune?")
declared("dtypes as text", '"gelu", dtypes="fp32"', "f.py:3: dtypes='fp32' in @kernel is not a list of dtypes")
declared("an unknown dtype declared", '"gelu", dtypes=["fp31"]', "f.py:3: dtypes: no dtype called 'fp31'", "fp32")
declared("dtypes the op does not have", '"gelu", dtypes=["int8"]', "f.py:4: gelu is declared for fp32", "in common")
declared("tune as a list", '"gelu", tune=["BLOCK"]', "f.py:3: tune=['BLOCK'] in @kernel is not a dict of lists")
declared("a tunable without choices", '"gelu", tune={"BLOCK": 512}', "f.py:3: tune: 'BLOCK' has the choices 512")
declared(
    "tune of a parameter that the function does not have",
    '"gelu", tune={"BLOK": [512]}',
    "f.py:4: tune names 'BLOK', which is no parameter of mine that may be tuned",
    "it has: BLOCK, warps",
    signature="x, *, out, BLOCK=512, warps=4",
)
declared(
    "tune of a function without tunables",
    '"gelu", tune={"BLOCK": [512, 1024]}',
    "f.py:4: tune names 'BLOCK', which is no parameter of mine",
    "add it to the signature: BLOCK=512",
)
declared(
    "variants as a list", '"gelu", variants=["wide"]', "f.py:3: variants=['wide'] in @kernel is not a dict of dicts"
)
declared("a variant that changes nothing", '"gelu", variants={"wide": {}}', "f.py:3: variants={'wide': {}} in @kernel")
declared(
    "a variant of an unknown parameter",
    '"gelu", variants={"wide": {"N": 1}}',
    "f.py:3: variants: 'wide' sets `N`, which is no parameter of mine with a default",
    "def mine(…, N=…)",
)
declared("scratch as text", '"gelu", scratch="fp32"', "f.py:3: scratch='fp32' in @kernel is not a dict", "dtype first")
declared("scratch without sizes", '"gelu", scratch={"t": ["fp32"]}', "f.py:3: scratch: 't' is declared as ['fp32']")
declared("scratch of an unknown dtype", '"gelu", scratch={"t": ["f", 4]}', "f.py:3: scratch 't': no dtype called 'f'")
declared(
    "scratch along an unknown axis", '"gelu", scratch={"t": ["fp32", "m"]}', "f.py:4: scratch: 't' has the size 'm'"
)
declared(
    "scratch named like an input", '"gelu", scratch={"x": ["fp32", 4]}', "f.py:4: scratch: gelu has a 'x' of its own"
)
declared("a backend that is no text", '"gelu", backend=1', "f.py:3: backend=1 in @kernel is not a language")
declared("an unknown backend", '"gelu", backend="jax"', "f.py:3: no backend called 'jax'", "one of: torch")
declared("a variant that is no text", '"gelu", variant=2', "f.py:3: variant=2 in @kernel is not a word")
declared(
    "a variant with odd characters", '"gelu", variant="a/b"', "f.py:3: variant='a/b': a part of an address", '"a_b"'
)
declared("most as a number", '"gelu", most=5', "f.py:3: most=5 in @kernel is not a dict of axes and sizes")
declared("most of no axis", '"gelu", most={"m": 5}', "f.py:4: most names 'm', which is no axis of gelu", "its axes: n")
declared("most that is no size", '"gelu", most={"n": "5"}', "f.py:3: most: 'n' may be at most '5'")
declared("requires as text", '"gelu", requires="x"', "f.py:3: requires='x' in @kernel is not a list of inputs")
declared("requires of no input", '"gelu", requires=["w"]', "f.py:4: requires names 'w', which is no input of gelu")
declared("returns that is no truth", '"gelu", returns="yes"', "f.py:3: returns='yes' in @kernel is not True or False")
declared("needs that is no text", '"gelu", needs=["a"]', "f.py:3: needs=['a'] in @kernel is not a distribution")
declared("expects that is no dict", '"gelu", expects=1', "f.py:3: expects=1 in @kernel is not a dict of gates")
declared(
    "no output taken", '"gelu"', "f.py:4: mine does not take the output `out`", "def mine(x, *, out)", signature="x"
)
declared("too few inputs", '"axpy"', "f.py:4: axpy has 2 inputs (x, y)", "def mine(x, y", signature="x, *, out")
declared(
    "a parameter nobody gives", '"gelu"', "f.py:4: mine asks for `wat`", "it gives: out, x", signature="x, *, out, wat"
)
declared("any arguments", '"gelu"', "f.py:4: mine takes *rest", "name every parameter", signature="x, *rest, out")
declared("an unknown op", '"gelo"', "f.py:4: no op called 'gelo'", "did you mean gelu")
python(
    "a decorator that is not imported",
    '@kernel("gelu")\ndef k(x, *, out): ...\n',
    "f.py:2: @kernel stands above k, but the file does not import it",
    "from assay import kernel",
)
python("a class", TORCH + '@kernel("gelu")\nclass K: ...\n', "f.py:4: @kernel stands above the class K")
python("an async function", TORCH + '@kernel("gelu")\nasync def k(x, *, out): ...\n', "f.py:4: k is an async function")
python("a lambda", TORCH + 'k = kernel("gelu")(lambda x, *, out: None)\n', "f.py:3: @kernel is applied to a lambda")
python(
    "a function in a function",
    TORCH + 'def f():\n    @kernel("gelu")\n    def k(x, *, out): ...\n',
    "f.py:5: k is not at the top level",
)
python(
    "a decorator without arguments",
    TORCH + "@kernel\ndef k(x, *, out): ...\n",
    "f.py:3: @kernel stands without its arguments",
)
python("an address twice", GOOD + GOOD, "f.py:9: gelu/torch:honest is defined on line 4 and again on line 9")

# Declarations of ops
AXES, IN, OUT = 'axes={"n": Axis()}', 'inputs={"x": Tensor("n")}', 'outputs={"out": Tensor("n")}'
op(
    "an unknown word in @op",
    f"{AXES}, {IN}, outputz={{}}",
    "f.py:4: the op's declaration failed: TypeError",
    "@op(axes=…",
)
op("an axis that is none", f'axes={{"n": 5}}, {IN}, {OUT}', "f.py:4: op mine: axis 'n' is 5, which is no Axis")
op(
    "an axis of fractions",
    f'axes={{"n": Axis(typical=1.5)}}, {IN}, {OUT}',
    "axis 'n' has sizes that are no whole numbers",
)
op(
    "an axis upside down",
    f'axes={{"n": Axis(min=9, max=3)}}, {IN}, {OUT}',
    "f.py:4: op mine: axis 'n' reaches from 9 to 3",
)
op(
    "an axis outside itself",
    f'axes={{"n": Axis(max=9)}}, {IN}, {OUT}',
    "axis 'n' is typically 1024, outside its own 0..9",
)
op(
    "a range upside down",
    f'{AXES}, inputs={{"x": Tensor("n", range=(1, -1))}}, {OUT}',
    "f.py:4: op mine: input 'x' has the range (1, -1), which holds no numbers",
    "range=(-1, 1)",
)
op(
    "a range of one number",
    f'{AXES}, inputs={{"x": Tensor("n", range=5)}}, {OUT}',
    "f.py:4: op mine: input 'x' has the range 5",
)
op("no axes", 'axes={}, inputs={"x": Tensor()}, outputs={"out": Tensor()}', "f.py:4: op mine: it has no axis")
op("no outputs", f"{AXES}, {IN}, outputs={{}}", "f.py:4: op mine: it has no outputs")
op(
    "an attribute that is none",
    f'{AXES}, {IN}, {OUT}, attributes={{"a": 1}}',
    "attribute 'a' is 1, which is no Attribute",
)
op(
    "an input that is none",
    f'{AXES}, inputs={{"x": "n"}}, {OUT}',
    "f.py:4: op mine: input 'x' is 'n', which is no Tensor",
)
op(
    "an output along no axis",
    f'{AXES}, {IN}, outputs={{"out": Tensor("m")}}',
    "output 'out' has the axis 'm'",
    "one of: n",
)
op("a size that is none", f'{AXES}, inputs={{"x": Tensor(1.5)}}, {OUT}', "f.py:4: op mine: input 'x' has the size 1.5")
op(
    "a tensor of no dtype",
    f'{AXES}, inputs={{"x": Tensor("n", dtype="f")}}, {OUT}',
    "op mine: input 'x': no dtype called 'f'",
)
op(
    "an op of no dtype",
    f'{AXES}, {IN}, {OUT}, dtypes=["f"]',
    "f.py:4: the op's declaration failed: no dtype called 'f'",
)
op(
    "an output that is an input",
    f'{AXES}, {IN}, outputs={{"x": Tensor("n")}}',
    "'x' is an output and stands among the inputs",
)
op("aliases of nothing", f'{AXES}, {IN}, {OUT}, aliases={{"out": "y"}}', "f.py:4: op mine: aliases names out → y")
op(
    "independent of nothing",
    f'{AXES}, {IN}, {OUT}, independent="m"',
    "op mine: independent names 'm', which is no axis",
)
op("an op's odd name", f'{AXES}, {IN}, {OUT}, name="a b"', "f.py:4: op a b: 'a b' is not a valid name for an op")
op(
    "a reference of other arguments",
    f"{AXES}, {IN}, {OUT}",
    "op mine: the reference takes (x, y), but it is called as (x)",
    reference="x, y",
)
op(
    "a magnitude of other arguments",
    f"{AXES}, {IN}, {OUT}, magnitude=lambda: 1",
    "op mine: magnitude takes (), but it is called",
)
op(
    "an attribute as an axis",
    f'{AXES}, {IN}, outputs={{"out": Tensor("bins")}}, attributes={{"bins": Attribute(4)}}',
    "f.py:4: op mine: output 'out' has the axis 'bins', which is not declared",
    'derived={"len_bins": lambda w: w.bins}',
)
op(
    "a reference that fails",
    f"{AXES}, {IN}, {OUT}",
    "f.py:6: op mine: the reference failed: ZeroDivisionError",
    body="return x / (1 // 0)",
)
op(
    "a reference that hangs",
    f"{AXES}, {IN}, {OUT}",
    "op mine: its reference is not done after 1 s on a few elements",
    body="return next(i for i in iter(int, 1) if i)",
)
op(
    "a reference of another shape",
    f"{AXES}, {IN}, {OUT}",
    "f.py:4: op mine: the reference returns shape (), `out` is declared",
    body="return x.sum()",
)
op(
    "a reference with another axis",
    'axes={"rows": Axis(), "cols": Axis()}, inputs={"x": Tensor("rows", "cols")}, outputs={"out": Tensor("cols")}',
    "op mine: the reference returns shape (rows)=(3,), `out` is declared (cols)=(5,) (on rows=3,cols=5,",
    body="return x.sum(-1)",
)
op(
    "a reference of two results",
    f"{AXES}, {IN}, {OUT}",
    "op mine: the reference or magnitude does not return one result",
    body="return x, x",
)
op(
    "a reference of no tensor",
    f"{AXES}, {IN}, {OUT}",
    "op mine: the reference returns float for 'out'",
    body="return 1.0",
)
op(
    "a magnitude of another shape",
    f"{AXES}, {IN}, {OUT}, magnitude=lambda x: x[:2]",
    "op mine: magnitude gives (2,) for 'out'",
)
op(
    "an op that needs a missing module",
    f"{AXES}, {IN}, {OUT}, **nowhere.Z",
    "f.py:3: the op's declaration failed: ModuleNotFoundError",
    "install what provides nowhere",
    before="import nowhere",
)
op(
    "an op whose file exits",
    f"{AXES}, {IN}, {OUT}, **Z",
    "f.py:3: the file ends the process while its op is declared",
    before="Z = exit(3)",
)
op(
    "an op whose declaration hangs",
    f"{AXES}, {IN}, {OUT}, **Z",
    "f.py:3: the op's declaration is not done after 1 s",
    before="Z = next(i for i in iter(int, 1) if i)",
)
op(
    "an op declared twice",
    f"{AXES}, {IN}, {OUT}",
    "the op mine is declared on line 4 and on line 11",
    after=f"@op({AXES}, {IN}, {OUT})\ndef mine(x): return x\n",
)
python(
    "a file of ops alone",
    f"from assay import Axis, Tensor, op\n@op({AXES}, {IN}, {OUT})\ndef mine(x): return x\n",
    "none is named that computes its op mine",
)
kind(
    "an op that two files declare",
    "check {}/f.py {}/g.py {}/k.py",
    "k.py:4: the op mine is declared by",
    "which one is meant",
    f__py=f"from assay import Axis, Tensor, op\n@op({AXES}, {IN}, {OUT})\ndef mine(x): return x\n",
    g__py=f"from assay import Axis, Tensor, op\n@op({AXES}, {IN}, {OUT})\ndef mine(x): return x\n",
    k__py=TORCH + '@kernel("mine")\ndef k(x, *, out): ...\n',
)
