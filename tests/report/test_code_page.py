"""The page of compiled code: real kernels, in a real browser, every link held against what nvdisasm says."""

import json
import re

import pytest

from assay.isa import pipes
from assay.report import code
from code_page import (
    ATOMIC,
    CALL,
    CALL_TWICE,
    FILE,
    LOAD,
    POPC,
    RSQRT,
    SOURCE,
    TWICE,
    addresses,
    lights,
    line,
    lit,
    rest,
    row,
    tab,
    tones,
)

# ---- without a browser


def test_the_page_is_one_offline_file_and_texts_stand_in_it_once(page_file):
    page = page_file.read_text()
    assert [p.name for p in page_file.parent.iterdir()] == ["page.html"]
    assert "default-src 'none'" in page and "unsafe-eval" not in page
    assert not re.search(r"""(?:src|href|action)\s*=|url\(|@import|https?://(?!www\.w3\.org)""", page)
    assert "A &lt;b&gt;title" in page and "<b>title" not in page
    assert page.count("__popc(bits") == 1, "two kernels of one source share its text"
    assert page.count("</script>") == page.count("<script"), "no text of a kernel ends a script"


def test_columns_hold_what_the_rows_said(built):
    _, kernel = built[0]
    texts = code.Numbered()
    packed = json.loads(json.dumps(code.pack(kernel, texts)))
    columns = packed["columns"]
    assert {len(c) for c in columns.values()} == {len(kernel.rows)}
    for n, want in enumerate(kernel.rows):
        assert columns["text"][n] == want["text"] and packed["pipes"][columns["pipe"][n]] == want["pipe"]
        assert [b for b in range(6) if columns["waits"][n] >> b & 1] == list(want["waits"])
        file, number, chain = packed["places"][columns["place"][n]]
        assert (packed["files"][file], number) == (want["source_file"], want["source_line"])
        assert tuple((packed["files"][f], at) for f, at in chain) == want["inlined"]
    assert texts.values[packed["sources"][0]] == SOURCE and texts.values[packed["ptx"]] == kernel.ptx


def test_every_pipe_has_a_colour_and_known_ones_always_the_same():
    assert set(pipes.PIPES) <= set(code.PIPE_COLOURS)
    assert len(set(code.PIPE_COLOURS.values())) == len(code.PIPE_COLOURS)
    given = code.colours(["made up", "fma", "another"])
    assert given["fma"] == code.PIPE_COLOURS["fma"] and given["made up"] != given["another"]


# ---- in a browser


@pytest.mark.browser
def test_the_planted_instructions_light_up_from_the_lines_that_wrote_them(page_file, built, visit):
    page = visit(page_file)
    function, _ = built[0]
    for place, opcode in ((RSQRT, "MUFU.RSQ"), (POPC, "POPC"), (ATOMIC, "REDG"), (LOAD, "LDG.E.128")):
        tab(page, place[0])
        line(page, "source", place[1]).hover()
        found = {f"{i.opcode}.{'.'.join(i.modifiers)}" for i in tones(function)[0][place]}
        shown = page.locator("#sass .l.kin .t").all_inner_texts()
        assert any(f.startswith(opcode) for f in found) and any(opcode in s for s in shown)


@pytest.mark.slow
@pytest.mark.browser
def test_hovering_any_source_line_lights_exactly_what_the_disassembler_attributes_to_it(page_file, built, visit):
    page = visit(page_file)
    function, kernel = built[0]
    own, inlined = tones(function)
    for file, text in kernel.sources.items():
        tab(page, file)
        for number in range(1, text.count("\n") + 1):
            line(page, "source", number).hover()
            mine, far = own[file, number], inlined[file, number]
            shown, ptx = lights(page), {i.ptx for i in mine}
            assert shown["sass", "kin"] == addresses(mine), f"{file}:{number}"
            assert shown["sass", "far"] == addresses(far), f"{file}:{number}"
            assert shown["ptx", "kin"] == sorted(ptx)
            assert shown["ptx", "far"] == sorted({i.ptx for i in far} - ptx)
    rest(page)
    assert page.locator(".l.kin, .l.far").count() == 0


@pytest.mark.slow
@pytest.mark.browser
def test_hovering_any_instruction_or_ptx_line_lights_its_lines(page_file, built, visit):
    page = visit(page_file)
    function, kernel = built[0]
    for file in kernel.sources:
        tab(page, file)
        for i in function.instructions:
            row(page, i.address).hover()
            kin = {(i.source.file, i.source.line)}
            far = {(p.file, p.line) for p in i.inlined} - kin
            shown = lights(page)
            assert shown["source", "kin"] == sorted(n for f, n in kin if f == file)
            assert shown["source", "far"] == sorted(n for f, n in far if f == file)
            assert shown["ptx", "kin"] == [i.ptx]
            assert shown["sass", "kin"] == [i.address]
        for number in sorted({i.ptx for i in function.instructions}):
            line(page, "ptx", number).hover()
            mine, shown = [i for i in function.instructions if i.ptx == number], lights(page)
            assert shown["sass", "kin"] == addresses(mine)
            assert shown["source", "kin"] == sorted({i.source.line for i in mine if i.source.file == file})


@pytest.mark.browser
def test_an_inlined_line_and_its_call_sites_light_in_two_tones(page_file, built, visit):
    page = visit(page_file)
    function, _ = built[0]
    tab(page, RSQRT[0])
    line(page, "source", RSQRT[1]).hover()
    assert lit(page, "source", "kin", "line") == [RSQRT[1]] and lit(page, "source", "far", "line") == [TWICE[1]]
    other = page.get_by_role("tab", name="planted.cu", exact=True)
    assert "far" in other.get_attribute("class"), "the tab of the file with the call sites says so"
    line(page, "source", RSQRT[1]).click()
    tab(page, FILE)
    assert lit(page, "source", "far", "line") == sorted([CALL[1], CALL_TWICE[1]])
    tones_ = "e => getComputedStyle(e).backgroundColor"
    near, far = (page.locator(f".l.{t}").first.evaluate(tones_) for t in ("kin", "far"))
    assert near != far
    deep = next(i for i in function.instructions if len(i.inlined) == 2)
    page.keyboard.press("Escape")
    row(page, deep.address).hover()
    assert f"planted.cuh:{RSQRT[1]}, inlined at planted.cuh:{TWICE[1]}, inlined at planted.cu:{CALL_TWICE[1]}" in (
        page.locator("#says").inner_text()
    )


@pytest.mark.browser
def test_a_click_pins_keys_step_and_escape_lets_go(page_file, built, visit):
    page = visit(page_file, width=1280, height=520)
    function, _ = built[0]
    mine = addresses(tones(function)[0][RSQRT])
    tab(page, RSQRT[0])
    line(page, "source", RSQRT[1]).click()
    step = "#step"
    assert page.locator(step).inner_text() == f"1 of {len(mine)}"
    stepped = [int(page.locator("#sass .l.step").get_attribute("data-address"))]
    for n in range(2, len(mine) + 1):
        page.keyboard.press("n" if n % 2 else "ArrowRight")
        assert page.locator(step).inner_text() == f"{n} of {len(mine)}"
        at = page.locator("#sass .l.step")
        box, room = at.bounding_box(), page.locator("#sass .scroll").bounding_box()
        assert room["y"] <= box["y"] and box["y"] + box["height"] <= room["y"] + room["height"]
        stepped.append(int(at.get_attribute("data-address")))
    assert stepped == mine
    page.keyboard.press("n")
    assert page.locator(step).inner_text().startswith("1 of"), "it goes round"
    page.keyboard.press("p")
    assert page.locator(step).inner_text().startswith(f"{len(mine)} of")
    first = min(i.ptx for i in tones(function)[0][RSQRT])
    box, room = line(page, "ptx", first).bounding_box(), page.locator("#ptx .scroll").bounding_box()
    assert room["y"] <= box["y"] <= room["y"] + room["height"], "the other panes went to the first kin"
    line(page, "ptx", first + 3).hover()
    assert page.locator("#pin").is_visible() and page.locator("#says").inner_text().startswith("planted.cuh:3")
    page.keyboard.press("Escape")
    assert not page.locator("#pin").is_visible() and not page.locator("#steps").is_visible()
    rest(page)
    assert page.locator(".l.kin, .l.far").count() == 0


@pytest.mark.browser
def test_a_pinned_instruction_steps_up_its_chain_of_inlining(page_file, built, visit):
    page = visit(page_file)
    deep = next(i for i in built[0][0].instructions if len(i.inlined) == 2)
    row(page, deep.address).click()
    seen = []
    for _ in range(4):
        at = page.locator(".l.step")
        pane = at.evaluate("e => e.closest('.pane').id")
        file = page.locator("#source [role=tab][aria-selected=true]").inner_text() if pane == "source" else "PTX"
        seen.append((file, int(at.get_attribute("data-line"))))
        page.keyboard.press("n")
    places = [deep.source, *deep.inlined]
    assert seen == [*((p.file.rsplit("/", 1)[-1], p.line) for p in places), ("PTX", deep.ptx)]
