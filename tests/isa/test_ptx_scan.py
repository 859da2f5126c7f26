"""Single facts of a PTX text, from texts that the reader accepts and from texts that it refuses."""

import re

import pytest

from assay.errors import SourceError
from assay.isa import ptx
from ptx_texts import HAND, NVRTC, body, by_nvrtc, has_nvrtc

UNKNOWN = """\
.version 99.0
.target sm_200a, sorcery
.sigil 4 { }
.visible .entry first(.param .u64 p) {
  .loc 2 7 3
  conjure.f32 <<<%r1>>>;
  setp.gt.s32 %p1, %r4, 1535; setp.lt.and.u64 %p2|%p3, %rd1, 0x4D, %p1; setp.lt ???;
  .loc 9 8 1 // a.py:8:1 @[ b.py:21:5 @[ other.py:30:2 ] ]
  @%p2 setp.ne.f32 %p1, %f1, 0f3F800000;
}
.entry
  second$1() { ret; }
// .entry third() { ret; }
.file 2 "/src/a.py"
.file 3 "/src/b.py"
/* .entry fourth() */ .extern .entry 5; /* .file 9 "no"
"""


def test_a_text_that_the_reader_refuses_still_tells_its_architecture_and_its_kernels():
    with pytest.raises(SourceError):
        ptx.read(UNKNOWN)
    assert ptx.architecture(UNKNOWN) == "sm_200a"
    assert ptx.entries(UNKNOWN) == ["first", "second$1"]
    assert [p.name for p in ptx.entry_parameters(UNKNOWN, "first")] == ["p"]
    assert ptx.entry_parameters(UNKNOWN, "second$1") == ()
    assert ptx.entry_parameters(UNKNOWN, "third") is None


def test_instructions_of_one_opcode_are_found_in_any_text():
    first, both, floats = ptx.instructions(UNKNOWN, "setp")
    assert first == ptx.read_instruction("setp.gt.s32 %p1, %r4, 1535")
    assert [o.value for o in both.operands if isinstance(o, ptx.Immediate)] == [77]
    assert floats.types == ("f32",) and floats.operands[2].value == 1.0


def test_the_line_table_of_any_text():
    inner = ptx.Spot("/src/a.py", 7, 3)
    outer = ptx.Spot("", 8, 1, (("/src/b.py", 21), ("other.py", 30)))
    assert ptx.line_table(UNKNOWN) == [None] * 4 + [inner] * 3 + [outer] * 10


@pytest.mark.parametrize(
    "text", ["", "\0\xff", ".target", ".target x", ".file 1", ".loc 1 2", ".loc 1 x 3", "/*.entry k"]
)
def test_nothing_is_found_in_noise(text):
    assert (ptx.architecture(text), ptx.entries(text), list(ptx.instructions(text, "setp"))) == ("", [], [])
    assert set(ptx.line_table(text)) == {None}
    assert ptx.entry_parameters(text, "k") is None


@has_nvrtc
@pytest.mark.parametrize("name", [*NVRTC, "hand"])
def test_what_is_found_is_what_the_reader_reads(name):
    text = HAND if name == "hand" else by_nvrtc(name)
    module = ptx.read(text)
    assert ptx.architecture(text) == module.target
    assert ptx.entries(text) == [f.name for f in module.entries]
    assert [ptx.entry_parameters(text, f.name) for f in module.entries] == [f.params for f in module.entries]
    table, code = ptx.line_table(text), [i for f in module.functions for i in f.instructions]
    assert len(list(ptx.instructions(text, "setp"))) == len([i for i in code if i.opcode == "setp"])
    for i in code:
        spot = table[i.line - 1]
        if i.location:
            assert (spot.file, spot.line, spot.column) == (
                module.files.get(i.location.file, ""),
                i.location.line,
                i.location.column,
            )


def test_local_variables_are_told_by_their_token():
    assert ".local" in ptx.tokens(body(".local .align 8 .b8 own[8];"))
    assert ".local" not in ptx.tokens(body("ld.local.u32 %r1, [16]; // .local here"))


def test_tokens_are_the_text_without_comments_and_blanks():
    bare = re.sub(r"//.*|/\*[\s\S]*?\*/|^#.*|\s", "", HAND, flags=re.MULTILINE)
    assert "".join(ptx.tokens(HAND)).replace(" ", "") == bare


SHARED = """.version 8.8
.target sm_90
.address_size 64
.visible .global .align 4 .u32 counter;
.global .align 16 .b8 buffer[4096];
.global .align 4 .f32 unused;
.global .align 4 .f32 table[2] = {0f3F800000, 0f40000000};
.const .align 4 .f32 constant[2];
.global .align 4 .f32 elsewhere;
.func called() { .reg .u64 %a; mov.u64 %a, buffer; ret; }
.visible .entry k(.param .u64 .ptr .global .align 4 p) { .reg .u64 %a; mov.u64 %a, counter; mov.u64 %a, table; ret; }
.visible .entry other() { .reg .u64 %a; mov.u64 %a, elsewhere; ret; }
"""


def test_what_a_launch_leaves_for_the_next_one_is_in_variables_without_a_value_that_code_uses():
    assert ptx.shared_by_launches(SHARED, "k") == ["counter", "buffer"]
    assert ptx.shared_by_launches(SHARED, "other") == ["buffer", "elsewhere"]
    assert ptx.shared_by_launches(HAND, ptx.entries(HAND)[0]) == []
