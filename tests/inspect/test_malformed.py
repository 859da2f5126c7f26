"""Every kind of bad file gives one clear error with what to do about it: no traceback of ours, no hang."""

import gzip
import os
import random
import shutil
import struct
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from assay import host
from assay.errors import AssayError, BuildError, MalformedError
from assay.inspect.code_in import assemble, code_in
from assay.isa import cubin as cubins
from assay.isa import fatbin, sass
from assay.target import Target

pytestmark = pytest.mark.skipif(
    any(host.tool(t) is None for t in ("ptxas", "fatbinary", "nvdisasm", "cuobjdump")) or shutil.which("gcc") is None,
    reason="no compiler or disassembler here",
)

SM_90 = Target("sm_90")
PATIENCE = 10
"""Seconds; a case takes a few hundredths on a free core."""

PTX = b"""\
.version 8.0
.target sm_90
.address_size 64
.visible .entry first(.param .u64 p) {
    .reg .b64 %rd<3>;
    .reg .f32 %f<3>;
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd2, %rd1;
    ld.global.f32 %f1, [%rd2];
    add.f32 %f2, %f1, 0f3F800000;
    st.global.f32 [%rd2], %f2;
    ret;
}
.visible .entry second() {
    .shared .align 4 .b8 room[1024];
    bar.sync 0;
    ret;
}
"""


@dataclass(frozen=True)
class Good:
    """What is broken in many ways below."""

    cubin: bytes
    plain: bytes
    """A fatbin of a cubin and PTX."""
    packed: bytes
    """The same, compressed."""
    object: bytes
    """A host object that holds the fatbin."""
    bare: bytes
    """A host object with no GPU code."""


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good")
    cubin = assemble(PTX, SM_90, "good.ptx")
    (folder / "k.cubin").write_bytes(cubin)
    (folder / "k.ptx").write_bytes(PTX + b" " * 1000)
    (folder / "bare.c").write_text("int f(void) { return 1; }\n")

    def run(*command):
        subprocess.run(command, cwd=folder, check=True)

    inside = ("--image3=kind=elf,sm=90,file=k.cubin", "--image3=kind=ptx,sm=90,file=k.ptx")
    run(host.tool("fatbinary"), "--create=plain.fatbin", "-64", "--compress-mode=none", *inside)
    run(host.tool("fatbinary"), "--create=packed.fatbin", "-64", "--compress-mode=size", *inside)
    run("gcc", "-c", "bare.c", "-o", "bare.o")
    run("objcopy", "--add-section", ".nv_fatbin=plain.fatbin", "bare.o", "full.o")
    made = Good(cubin, *((folder / f).read_bytes() for f in ("plain.fatbin", "packed.fatbin", "full.o", "bare.o")))
    for data in (made.cubin, made.plain, made.packed, made.object, PTX):
        (folder / "any").write_bytes(data)
        through(folder / "any")
    return made


def through(path):
    """All that inspect does with a bare file."""
    for code in code_in(path):
        cubin = code.data if code.kind == "cubin" else assemble(code.data, SM_90, code.origin, limit=PATIENCE)
        assert [f.symbol for f in cubins.functions(cubin)]
        assert sass.disassemble(cubin, limit=PATIENCE)


def put(data, at, form, value):
    """With one field replaced."""
    return data[:at] + struct.pack(form, value) + data[at + struct.calcsize(form) :]


def flip(data, at):
    return put(data, at, "B", data[at] ^ 0xFF)


def headers(cubin):
    """Where each section's header begins, by name."""
    (offset,) = struct.unpack_from("<Q", cubin, 0x28)
    return {s.name: offset + 64 * i for i, s in enumerate(cubins.elf_sections(cubin))}


def with_bytes(cubin):
    return [n for n, s in ((s.name, s) for s in cubins.sections(cubin)) if s.data]


def inside(cubin, name):
    """Where a section's bytes begin."""
    return struct.unpack_from("<Q", cubin, headers(cubin)[name] + 24)[0]


def renamed(cubin, name):
    """The section loses its name."""
    return put(cubin, headers(cubin)[name], "<I", 0)


CASES = {}
"""Name → what makes the bad bytes from the good ones."""

for i in range(64):
    CASES[f"a cubin cut at {i}/64"] = lambda g, i=i: g.cubin[: len(g.cubin) * i // 64]
for i in range(1, 9):
    CASES[f"a cubin without its last {i} bytes"] = lambda g, i=i: g.cubin[:-i]
for i in (0, 1, 2, 3, 4, 5, 18, 19):
    CASES[f"a cubin with byte {i} of its header flipped"] = lambda g, i=i: flip(g.cubin, i)
for at, what in ((0x20, "program headers"), (0x28, "section headers")):
    for byte in range(2, 8):
        CASES[f"{what} far away: byte {byte}"] = lambda g, at=at + byte: flip(g.cubin, at)
for at, what in (
    (0x36, "size of a program header"),
    (0x38, "number of program headers"),
    (0x3A, "size of a section header"),
    (0x3C, "number of sections"),
    (0x3E, "section of names"),
):
    CASES[f"wrong {what}, high byte"] = lambda g, at=at: flip(g.cubin, at + 1)
CASES["wrong size of a section header, low byte"] = lambda g: flip(g.cubin, 0x3A)
CASES["no section headers"] = lambda g: put(g.cubin, 0x28, "<Q", 0)
CASES["section headers at an odd place"] = lambda g: put(g.cubin, 0x28, "<Q", 65)
CASES["one section"] = lambda g: put(g.cubin, 0x3C, "<H", 1)
for number in (0, 1, 13, 19, 40, 200, 255):
    CASES[f"built for sm_{number}"] = lambda g, number=number: put(g.cubin, 49, "B", number)
for machine in (0, 3, 40, 62, 183, 243, 0xFFFF):
    CASES[f"an ELF file for machine {machine}"] = lambda g, machine=machine: put(g.cubin, 18, "<H", machine)
for i in range(12):
    for at, form, value, what in (
        (0, "<I", 0x7FFFFFFF, "name"),
        (24, "<Q", 1 << 40, "place"),
        (32, "<Q", 1 << 40, "size"),
        (32, "<Q", (1 << 64) - 1, "endless size"),
        (24, "<Q", (1 << 64) - 8, "place before the file"),
    ):
        CASES[f"section {i + 1} of a bad {what}"] = lambda g, i=i, at=at, form=form, value=value: put(
            g.cubin, headers(g.cubin)[with_bytes(g.cubin)[i]] + at, form, value
        )
for name in (".symtab", ".strtab"):
    CASES[f"no {name}"] = lambda g, name=name: renamed(g.cubin, name)
    CASES[f"an empty {name}"] = lambda g, name=name: put(g.cubin, headers(g.cubin)[name] + 32, "<Q", 0)
    CASES[f"half a {name}"] = lambda g, name=name: put(g.cubin, headers(g.cubin)[name] + 32, "<Q", 37)
for i in range(6):
    CASES[f"symbol {i} named outside the table"] = lambda g, i=i: put(
        g.cubin, inside(g.cubin, ".symtab") + 24 * i, "<I", 0x00FFFFFF
    )
CASES["symbol names that are no text"] = lambda g: put(
    g.cubin, g.cubin.index(b"\0first\0", inside(g.cubin, ".strtab")) + 1, "B", 0xFF
)
CASES["section names that are no text"] = lambda g: put(g.cubin, inside(g.cubin, ".shstrtab") + 1, "B", 0xFF)
CASES["section names without an end"] = lambda g: (
    g.cubin[: (at := inside(g.cubin, ".shstrtab"))] + b"A" * len(g.cubin[at:2000]) + g.cubin[max(at, 2000) :]
)
CASES["an entry of .nv.info beyond its end"] = lambda g: put(g.cubin, inside(g.cubin, ".nv.info") + 2, "<H", 0xFFF0)
CASES["machine code that is none"] = lambda g: (
    g.cubin[: (at := inside(g.cubin, ".text.first"))] + b"\xff" * 128 + g.cubin[at + 128 :]
)

for i in range(1, 24):
    CASES[f"a fatbin cut at {i}/24"] = lambda g, i=i: g.plain[: len(g.plain) * i // 24]
    CASES[f"a compressed fatbin cut at {i}/24"] = lambda g, i=i: g.packed[: len(g.packed) * i // 24]
    CASES[f"a host object cut at {i}/24"] = lambda g, i=i: g.object[: len(g.object) * i // 24]
for at, what in (
    (0, "magic"),
    (7, "header size"),
    (12, "size"),
    (16, "kind"),
    (22, "image header"),
    (30, "image size"),
):
    CASES[f"a fatbin of a bad {what}"] = lambda g, at=at: flip(g.plain, at)
    CASES[f"a compressed fatbin of a bad {what}"] = lambda g, at=at: flip(g.packed, at)
CASES["a fatbin with an image header too small"] = lambda g: put(g.plain, 20, "<I", 8)
CASES["a fatbin with a header too small"] = lambda g: put(g.plain, 6, "<H", 0)
CASES["a fatbin with nothing in it"] = lambda g: fatbin.MAGIC + struct.pack("<HHQ", 1, 16, 0)
CASES["a compressed image that is noise"] = lambda g: g.packed[:90] + random.Random(1).randbytes(400) + g.packed[490:]
CASES["noise after a fatbin"] = lambda g: g.plain + b"noise, and more of it"
CASES["a host object with no GPU code"] = lambda g: g.bare
CASES["a 32-bit object"] = lambda g: put(g.bare, 4, "B", 1)
CASES["a host object as a cubin"] = lambda g: put(g.bare, 18, "<H", 190)

TEXTS = {
    "nothing": b"",
    "blanks": b" \n\t \n",
    "a byte": b"\x7f",
    "an ELF magic alone": b"\x7fELF",
    "zeros": bytes(5000),
    "prose": b"The quick brown fox jumps over the lazy dog.\n" * 50,
    "CUDA source": b"__global__ void k(float* x) { x[0] = 1; }\n",
    "Python source": b"import triton\n\ndef f(x):\n    return x\n",
    "JSON": b'{"version": ".version 8.0"}',
    "a shell script": b"#!/bin/sh\nexit 0\n",
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "gzip": gzip.compress(PTX),
    "a static library": b"!<arch>\nk.o/   0  0  0  644  10  `\n",
    "PTX without .version": PTX.split(b"\n", 1)[1],
    "PTX without .target": b"\n".join(line for line in PTX.split(b"\n") if b".target" not in line),
    "PTX in UTF-16": PTX.decode().encode("utf-16"),
    "PTX of the future": PTX.replace(b"8.0", b"99.9"),
    "PTX of no version": PTX.replace(b"8.0", b"eight"),
    "PTX for no GPU": PTX.replace(b"sm_90", b"sm_999"),
    "PTX for a newer GPU": PTX.replace(b"8.0", b"9.0").replace(b"sm_90", b"sm_121"),
    "PTX of 16 bits": PTX.replace(b"size 64", b"size 16"),
    "PTX in a comment without end": b"/* " + PTX,
    "PTX with an open comment in it": PTX.replace(b"    ret;", b"    /* ret;", 1),
    "PTX with an unknown instruction": PTX.replace(b"add.f32", b"conjure.f32"),
    "PTX with an unknown register": PTX.replace(b"%f2, %f1", b"%f9, %f1"),
    "PTX of wrong types": PTX.replace(b"add.f32", b"add.u64"),
    "PTX with a name twice": PTX.replace(b"second", b"first"),
    "PTX with a byte of noise": PTX.replace(b"ld.param", b"ld.p\xffram"),
    "PTX with NULs in it": PTX.replace(b"    ret;\n}\n.visible", b"    \0\0\0\n}\n.visible"),
    "PTX with too much shared memory": PTX.replace(b"1024", b"9999999"),
    "PTX that closes too often": PTX + b"}\n",
    "PTX that calls nobody": PTX.replace(b"bar.sync 0", b"call nobody"),
    ".version alone": b".version",
    ".version and noise": b".version 8.0\n.target sm_90\n" + random.Random(2).randbytes(3000),
}
CASES |= {what: lambda g, text=text: text for what, text in TEXTS.items()}
for i in range(20):
    CASES[f"noise {i}"] = lambda g, i=i: random.Random(i).randbytes(1 + 97 * i * i)
    CASES[f"noise behind an ELF header {i}"] = lambda g, i=i: g.cubin[:64] + random.Random(i).randbytes(4000)
    at = PTX.index(b"ld.param") + i * (PTX.index(b"    ret;") - PTX.index(b"ld.param")) // 20
    CASES[f"PTX cut at {at}"] = lambda g, at=at: PTX[:at]

PLACES = {
    "a folder": lambda folder: folder,
    "a missing file": lambda folder: folder / "nothing.cubin",
    "a file that cannot be read": lambda folder: Path("/proc/self/mem"),
    "a device": lambda folder: Path("/dev/zero"),
    "a pipe": lambda folder: os.mkfifo(folder / "pipe") or folder / "pipe",
    "a link to nothing": lambda folder: (folder / "a").symlink_to("b") or folder / "a",
    "a link to itself": lambda folder: (folder / "a").symlink_to("a") or folder / "a",
    "a file inside a file": lambda folder: Path(__file__) / "x",
    "a name too long": lambda folder: folder / ("x" * 5000),
    "a name with a NUL": lambda folder: folder / "a\0b",
}


def refused(path):
    start = time.process_time()
    with pytest.raises(AssayError) as caught:
        through(path)
    assert time.process_time() - start < PATIENCE
    assert caught.value.what.strip() and caught.value.fix.strip()
    assert "Traceback" not in str(caught.value)
    return caught.value


def test_there_are_many_kinds():
    assert len(CASES) + len(PLACES) >= 200


@pytest.mark.parametrize("case", CASES)
def test_a_bad_file_is_refused_with_a_reason_and_a_fix(case, good, tmp_path):
    file = tmp_path / "bad"
    file.write_bytes(CASES[case](good))
    refused(file)


@pytest.mark.parametrize("place", PLACES)
def test_a_bad_place_is_refused_with_a_reason_and_a_fix(place, tmp_path):
    refused(PLACES[place](tmp_path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read all")
def test_a_file_of_somebody_else(tmp_path):
    file = tmp_path / "mine"
    file.write_bytes(PTX)
    file.chmod(0)
    assert "ermission" in refused(file).what


@pytest.mark.parametrize("seed", range(10))
def test_any_byte_may_be_wrong(good, seed):
    """Some do no harm. None gives anything but a result or an AssayError."""
    dice = random.Random(seed)
    for _ in range(200):
        for data, read in ((good.cubin, cubins.functions), (good.cubin, cubins.target), (good.plain, fatbin.images)):
            bad = bytearray(data)
            for _ in range(dice.randint(1, 4)):
                bad[dice.randrange(len(bad))] = dice.randrange(256)
            try:
                read(bytes(bad))
            except AssayError as problem:
                assert problem.fix
    bad = bytearray(good.cubin)
    bad[dice.randrange(64, len(bad))] ^= 1 << dice.randrange(8)
    try:
        sass.disassemble(bytes(bad), limit=PATIENCE)
    except AssayError as problem:
        assert problem.fix


def test_the_error_names_the_file(tmp_path):
    file = tmp_path / "k.cubin"
    file.write_bytes(b"noise")
    assert str(refused(file)).startswith(str(file))


def test_the_error_names_the_line_of_the_ptx(tmp_path):
    file = tmp_path / "k.ptx"
    file.write_bytes(PTX.replace(b"add.f32", b"conjure.f32"))
    (code,) = code_in(file)
    with pytest.raises(BuildError, match="conjure") as caught:
        assemble(code.data, SM_90, str(file))
    assert caught.value.where == f"{file}:10"


def test_a_gpu_that_nvdisasm_does_not_know_is_named_in_its_own_words(good):
    with pytest.raises(MalformedError, match=r"sm_200.*SM200") as caught:
        sass.disassemble(put(good.cubin, 49, "B", 200))
    assert "newer" in caught.value.fix


def test_a_tool_that_takes_too_long_is_ended(good, monkeypatch, tmp_path):
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setattr(host, "tool", lambda name: slow)
    for work in (
        lambda: assemble(PTX, SM_90, "k.ptx", limit=0.2),
        lambda: sass.disassemble(good.cubin, limit=0.2),
        lambda: fatbin.images(good.packed, limit=0.2),
    ):
        with pytest.raises(AssayError, match=r"still .* after 0\.2 s") as caught:
            work()
        assert caught.value.fix


def test_without_the_tools_the_error_says_what_to_install(good, monkeypatch):
    monkeypatch.setattr(host, "tool", lambda name: None)
    for work in (lambda: assemble(PTX, SM_90, "k.ptx"), lambda: sass.disassemble(good.cubin)):
        with pytest.raises(AssayError) as caught:
            work()
        assert "pip install" in caught.value.fix


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["one kernel", "many kernels"])
def test_fifty_megabytes_of_ptx_do_not_hang(tmp_path, kind):
    line = b"    add.f32 %f2, %f2, %f1;\n"
    at = PTX.index(b"    st.global")
    if kind == "one kernel":
        huge = PTX[:at] + line * (50_000_000 // len(line)) + PTX[at:]
    else:
        one = PTX[PTX.index(b".visible") :].replace(b"first", b"first%07d").replace(b"second", b"second%07d")
        one = one.replace(b"%rd", b"%%rd").replace(b"%f<", b"%%f<").replace(b"%f1", b"%%f1").replace(b"%f2", b"%%f2")
        huge = PTX[: PTX.index(b".visible")] + b"".join(
            one % (i, i) for i in range(50_000_000 // len(one % (0, 0)) + 1)
        )
    assert len(huge) >= 50_000_000
    file = tmp_path / "huge.ptx"
    file.write_bytes(huge)
    start = time.process_time()
    (code,) = code_in(file)
    with pytest.raises(BuildError, match=r"still at work after 1 s on 5\d\.\d MB"):
        assemble(code.data, SM_90, str(file), limit=1)
    assert time.process_time() - start < PATIENCE
