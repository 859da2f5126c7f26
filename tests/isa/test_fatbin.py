"""What is inside a fatbin, an object and a program, against cuobjdump's own listing and extraction."""

import re
import shutil
import subprocess

import pytest

from assay import host
from assay.errors import AssayError
from assay.inspect.code_in import assemble, code_in
from assay.isa import cubin as cubins
from assay.isa import fatbin
from assay.target import Target

pytestmark = pytest.mark.skipif(
    any(host.tool(t) is None for t in ("nvcc", "cuobjdump")) or shutil.which("gcc") is None,
    reason="no nvcc, cuobjdump or host compiler here",
)

SOURCE = """\
__global__ void k(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 2.5f; }
#ifdef PROGRAM
int main() { k<<<1, 1>>>(nullptr, 0); }
#endif
"""
TWO = ("compute_80,code=sm_80", "compute_90a,code=sm_90a")
ALL = (*TWO, "compute_90,code=compute_90", "compute_90a,code=compute_90a", "compute_100f,code=sm_100f")

BUILDS = {
    "plain.fatbin": ("-fatbin", "--compress-mode=none", *ALL),
    "usual.fatbin": ("-fatbin", "compute_90,code=sm_90", "compute_90,code=compute_90"),
    "small.fatbin": ("-fatbin", "--compress-mode=size", "-lineinfo", *ALL),
    "lz4.fatbin": ("-fatbin", "--compress-mode=speed", *TWO, "compute_80,code=compute_80"),
    "object.o": ("-c", "-lineinfo", *TWO, "compute_90,code=compute_90"),
    "relocatable.o": ("-dc", *TWO),
    "program": ("-DPROGRAM", *TWO),
    "linked": ("-DPROGRAM", "-rdc=true", *TWO),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fatbin")


@pytest.fixture(scope="module", params=BUILDS)
def built(request, folder):
    source, made = folder / "k.cu", folder / request.param
    source.write_text(SOURCE)
    flags = [f"arch={f}" if f.startswith("compute") else f for f in BUILDS[request.param]]
    words = [word for f in flags for word in (("-gencode", f) if f.startswith("arch=") else (f,))]
    libraries = [f"-L{r / 'lib'}" for r in host.cuda_roots()]
    subprocess.run([host.tool("nvcc"), *words, *libraries, source, "-o", made], check=True)
    return made


def extracted(file, kind, into):
    """cuobjdump's (target, bytes), in its order."""
    into.mkdir()
    flag = {"cubin": "elf", "ptx": "ptx"}[kind]
    listed = subprocess.run([host.tool("cuobjdump"), f"-l{flag}", file], capture_output=True, text=True).stdout
    subprocess.run([host.tool("cuobjdump"), f"-x{flag}", "all", file], cwd=into, capture_output=True)
    names = re.findall(r"file +\d+: (\S+)", listed)
    return [(re.search(r"(sm_\w+)\.", name)[1], (into / name).read_bytes()) for name in names]


@pytest.mark.slow
def test_images_are_those_that_cuobjdump_lists_and_extracts(built, tmp_path):
    images = fatbin.images(built.read_bytes())
    assert images
    for kind in ("cubin", "ptx"):
        ours = [i for i in images if i.kind == kind]
        theirs = extracted(built, kind, tmp_path / kind)
        assert [i.data for i in ours] == [data for _, data in theirs]
        for image, (target, _) in zip(ours, theirs, strict=True):
            # cuobjdump calls a cubin for sm_100f sm_100; the box knows better.
            shown = image.target.replace("compute", "sm")
            assert shown == target or (shown, target) == ("sm_100f", "sm_100")


@pytest.mark.slow
def test_an_image_says_how_it_was_unpacked(built):
    notes = {i.note for i in fatbin.images(built.read_bytes())}
    expected = {
        "plain.fatbin": {""},
        "small.fatbin": {"zstd-compressed; unpacked by cuobjdump"},
        "lz4.fatbin": {"", "LZ4-compressed; unpacked by cuobjdump"},
    }
    assert notes == expected.get(built.name, notes)


@pytest.mark.slow
def test_a_file_is_known_by_its_content(built, tmp_path):
    """Under a name that says nothing: the same code, each piece with its target; PTX can be assembled, cubins read."""
    nameless = tmp_path / "thing"
    shutil.copy(built, nameless)
    found = code_in(nameless)
    assert [(c.kind, c.target) for c in found] == [(i.kind, i.target) for i in fatbin.images(built.read_bytes())]
    for number, code in enumerate(found, 1):
        assert f"thing, image {number} of {len(found)}" in code.origin
        if code.kind == "cubin":
            assert str(cubins.target(code.data)) == code.target
    kernels = [f.symbol for c in found if c.kind == "cubin" for f in cubins.functions(c.data)]
    assert kernels.count("_Z1kPfi") == len([c for c in found if c.kind == "cubin" and b"_Z1kPfi" in c.data])
    assert "_Z1kPfi" in kernels


@pytest.mark.slow
def test_the_source_is_named_where_the_compiler_noted_it(folder, built):
    names = {i.name.rsplit("/", 1)[-1] for i in fatbin.images(built.read_bytes())}
    assert names == ({"k.cu"} if built.name in ("small.fatbin", "object.o") else {""})


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90", "sm_90a", "sm_100f", "sm_103a", "sm_121"])
def test_a_bare_cubin_and_its_target(tmp_path, target):
    """Also for those whose letter the ELF header does not hold."""
    ptx = f".version 9.0\n.target {target}\n.address_size 64\n.visible .entry k() {{ ret; }}\n".encode()
    file = tmp_path / "x.bin"
    file.write_bytes(ptx)
    (text,) = code_in(file)
    assert (text.kind, text.target, text.data) == ("ptx", target.replace("sm", "compute"), ptx)
    file.write_bytes(assemble(ptx, Target(target), "x.ptx"))
    (code,) = code_in(file)
    assert (code.kind, code.target) == ("cubin", target)


@pytest.mark.slow
def test_without_cuobjdump_compressed_code_is_refused_and_plain_code_is_read(folder, built, monkeypatch):
    data = built.read_bytes()
    packed = any(i.note for i in fatbin.images(data))
    monkeypatch.setattr(host, "tool", lambda name: None)
    if packed:
        with pytest.raises(AssayError, match=r"compressed code needs cuobjdump.*\n.*pip install"):
            fatbin.images(data)
    else:
        assert fatbin.images(data)


def test_lto_ir_is_named_and_left_out(folder, tmp_path):
    (tmp_path / "k.cu").write_text(SOURCE)
    made = tmp_path / "lto.fatbin"
    command = [host.tool("nvcc"), "-fatbin", "-gencode", "arch=compute_90,code=lto_90", tmp_path / "k.cu", "-o", made]
    subprocess.run(command, check=True)
    assert [i.kind for i in fatbin.images(made.read_bytes())] == ["ltoir"]
    with pytest.raises(AssayError, match="LTO-IR"):
        code_in(made)
