"""The PTX reader on wrong, damaged and very long texts."""

import re
import time
from itertools import accumulate

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from assay.errors import SourceError
from assay.isa import ptx
from ptx_texts import HAND, HEAD, all_instructions, body


def refused(text):
    with pytest.raises(SourceError) as caught:
        ptx.read(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("\x7fELF\x02\x00", "line 1: expected '.version'"),
        (".target sm_90\n", "line 1: expected '.version', with which every PTX begins, found '.target'"),
        (".version 8.0\nmov.u32 %r1, 5;", "line 2: expected '.target' after .version, found 'mov.u32'"),
        (HEAD + "mov.u32 %r1, 5;", "line 4: expected a function, a variable or another directive of a module"),
        (HEAD + ".entry k() {\nret;\n", "the '}' of the function whose body begins on line 4"),
        (HEAD + "/* never closed", "line 4: expected the '*/' of this comment"),
        (HEAD + ".section .debug_info {\n.b8 1", "line 4: expected a '}', found the end of the text"),
        (HEAD + '.file 1 "open\n', "line 4: expected a file's name in quotes"),
        (body("mov.u32 %r1, 5"), "line 7: expected a ';', found the end of the text"),
        (body("mov.u32 %r1, 5") + ".entry l() { ret; }", "line 7: expected ',' or ';', found '}'"),
        (body("mov.u32 %r1, ;"), "line 7: expected an operand, found ';'"),
        (body("mov.u32 %r1 %r2;"), "line 7: expected ',' or ';', found '%r2'"),
        (body("\nmov.u32 %r1, %r9;"), "line 8: %r9 is neither declared nor a special register"),
        (body("ld.global.u32 %r1, [%r2;"), "line 7: expected ']' or ',', found ';'"),
        (body("ld.global.u32 {%r1, %r2, [%r2];"), "line 7: expected an operand, found '['"),
        (body("@5 ret;"), "line 7: expected a predicate register after '@', found '5'"),
        (body("bra NOWHERE;"), "line 7: expected a label NOWHERE"),
        (body("L: ret;\nL: ret;"), "line 8: the label L stands in this block a second time"),
        (body("bra L; { L: ret; }"), "line 7: expected a label L"),
        (body("bra;"), "line 7: expected where to go after bra"),
        (body(".reg .b32;"), "line 7: expected a register's name"),
        (body(".shared .q32 x;"), "line 7: expected a type, a space or an alignment, found '.q32'"),
        (body("mov.u32 %r1, 1 / 0;"), "line 7: a constant is divided by zero"),
        (body("mov.u32 %r1, 99999999999999999999;"), "line 7: expected an operand, found '99999999999999999999'"),
        (body("{" * 100_000), "more than 256 blocks within blocks"),
        (body("mov.u32 %r1, " + "(" * 100_000 + ";"), "line 7: expected a number"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text, told):
    assert told in refused(text)


def read_or_refused(text, read=ptx.read):
    """What was read, or None where the text was refused and the message names the line. Instructions stand in the text
    on the line and in the order that was read, and each is read again from its own printed form."""
    try:
        found = read(text)
    except SourceError as error:
        assert "PTX line" in str(error) or "the PTX is empty" in str(error)
        return None
    starts, at = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0)), 0
    for i in all_instructions(found) if read is ptx.read else [found]:
        at = text.find(i.opcode, max(at, starts[i.line - 1])) + len(i.opcode)
        assert at >= len(i.opcode), i
        assert ptx.read_instruction(i.text, i.names) == i
    return found


WHOLE = ptx.read(HAND)
HEADER = HAND.index("/* several")
PIECE = re.compile(r"^(?=/\*|\.(?:file|global|visible|extern|func|weak|section))", re.MULTILINE)
"""Before each comment, directive, variable, function and section behind the header."""


@given(st.integers(0, len(HAND)))
@settings(max_examples=120, deadline=None)
@example(HAND.index("ebug"))
@example(HAND.index(".func stop"))
@example(HAND.index(".section .debug_str"))
@example(len(HAND))
def test_a_text_that_was_cut_off_is_refused_unless_the_cut_is_between_two_pieces(end):
    found = read_or_refused(HAND[:end])
    if end < HEADER:
        assert found is None or ("sm_90a".startswith(found.target) and found.functions == ())
        return
    pieces, whole = PIECE.split(HAND[HEADER:end]), PIECE.split(HAND[HEADER:])
    if pieces[-1].strip() not in ("", whole[len(pieces) - 1].strip()):
        assert found is None
        return
    functions = sum(".entry" in piece or ".func" in piece for piece in pieces)
    declared = sum(2 if "a = 5, b[2][3]" in piece else ".align" in piece.split("(")[0] for piece in pieces)
    assert (found.functions, found.globals) == (WHOLE.functions[:functions], WHOLE.globals[:declared])
    assert (found.version, found.target, found.address_size) == (WHOLE.version, WHOLE.target, WHOLE.address_size)


TOKENS = [*ptx.tokens(HAND), "\0", "ß", "٣", "\\", '"', "/*", "*/", "#", "@", "0x", "%", "::", "\n", "1" * 5000]


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 3), st.sampled_from(TOKENS)), min_size=1, max_size=6))
@settings(max_examples=250, deadline=None)
@example([(HAND.index("inlined_at"), 5, "{")])
@example([(HAND.index("0x1F"), 4, "1.5")])
def test_a_text_with_mistakes_is_refused_or_read_as_it_stands(changes):
    """Each puts a token over some letters of the text."""
    text = HAND
    for at, dropped, token in changes:
        at %= len(text)
        text = text[:at] + token + text[at + dropped :]
    read_or_refused(text)


@given(st.one_of(st.text(max_size=80), st.lists(st.sampled_from(TOKENS), max_size=60).map(" ".join)))
@settings(max_examples=200, deadline=None)
@example("L: .branchtargets x")
@example("L:")
@example("ret; } .entry l() { trap;")
def test_noise_is_refused_or_read_as_it_stands(noise):
    assert read_or_refused(noise) is None, "it has no header"
    read_or_refused(noise, ptx.read_instruction)
    if found := read_or_refused(HEAD + noise):
        assert (found.version, found.target, found.address_size) == ((8, 0), "sm_90", 64)
    if found := read_or_refused(body(noise)):
        first = found.functions[0]
        assert (first.name, first.kind, first.line) == ("k", "entry", 4)
        assert [(r.type, r.name, r.count) for r in first.registers[:2]] == [("b32", "%r", 4), ("pred", "%p", 2)]


def repeated(times):
    """A kernel of 10 × `times` instructions, as compilers write them."""
    code = """
	.loc	1 12 {i}, function_name $name, inlined_at 1 7 3
	ld.global.nc.v4.u32 	{{%r{i}, %r1, %r2, %r3}}, [%rd1+{i}];
	mov.b32 	%f{i}, %r{i};
	fma.rn.f32 	%f{i}, %f1, 0f3F800000, %f{i};
	{{ cvt.rn.bf16.f32 %rs{i}, %f{i};}}
	setp.lt.s64 	%p1, %rd{i}, %rd2;
	@%p1 bra 	$L{i};
$L{i}:
	add.s64 	%rd{i}, %rd1, {i};
	{{.reg .b32 n; neg.s32 n, %r{i}; mov.u32 %r{i}, n;}}
	st.global.u32 	[%rd{i}], %r{i};
"""
    declared = "".join(
        f".reg .{t} %{n}<{times}>;\n" for t, n in (("b32", "r"), ("b64", "rd"), ("f32", "f"), ("b16", "rs"))
    )
    return body(declared + "".join(code.format(i=i) for i in range(4, times)))


def test_time_grows_with_the_text_and_no_faster():
    """10,000 and 50,000 instructions; the second in a few seconds. Time of this process: other work does not count."""

    def seconds(times):
        text = repeated(times)
        begun = time.process_time()
        read = len(all_instructions(ptx.read(text)))
        assert read == 10 * (times - 4)
        return time.process_time() - begun

    few, many = seconds(1_000), seconds(5_000)
    assert many < 8
    assert many < 5 * few * 2 + 0.5


ODD = {
    "operands": (body("mov.u32 " + "%r1, " * 200_000), "line 7: expected a ';', found the end of the text"),
    "blocks": (body("{" + "}{" * 100_000), "the '}' of the function whose body begins on line 5"),
    "comments": (HEAD + "/*" * 300_000, "line 4: expected a function, a variable or another directive of a module"),
    "open comments": (HEAD + "/* " * 300_000, "line 4: expected the '*/' of this comment"),
    "lines": (HEAD + "\n" * 500_000 + "x", "line 500004: expected a function, a variable"),
    "digits": (body("mov.u32 %r1, " + "7" * 500_000 + ";"), "line 7: expected an operand, found '7777777"),
}


@pytest.mark.parametrize(("text", "told"), ODD.values(), ids=ODD)
def test_odd_texts_are_refused_as_quickly(text, told):
    begun = time.process_time()
    assert told in refused(text)
    assert time.process_time() - begun < 4


def test_many_signs_and_many_callers_are_read_as_quickly():
    begun = time.process_time()
    (mov,) = ptx.read(body("mov.u32 %r1, " + "- " * 200_000 + "5;")).functions[0].instructions
    assert mov.operands[1].value == 5
    inlined = "".join(f".loc 1 {i + 1} 1, inlined_at 1 {i} 1\n" for i in range(20_000))
    (ret,) = ptx.read(body(inlined + "ret;")).functions[0].instructions
    assert [place.line for place in ret.location.inlined] == list(range(19_999, 19_999 - 256, -1))
    assert time.process_time() - begun < 4
