"""What a reader does on the page of compiled code: search, fold, colour and choose panes, by mouse and by keys."""

import re
from collections import defaultdict

import pytest

from assay.report import code
from assay.report.code import Code
from code_page import (
    ATOMIC,
    FILE,
    LOAD,
    POPC,
    RSQRT,
    addresses,
    line,
    lit,
    row,
    tab,
    tones,
)


@pytest.mark.slow
@pytest.mark.browser
def test_search_goes_through_all_panes(page_file, built, visit):
    page = visit(page_file, height=700)
    kernel = built[0][1]
    texts = [*kernel.sources.values(), kernel.ptx, "\n".join(r["text"] for r in kernel.rows)]
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "find"

    def found(says):
        page.locator("#found", has_text=re.compile(f"^{says}$")).wait_for()

    def look_for(text, pattern):
        page.locator("#find").fill(text)
        want = sum(bool(re.search(pattern, one, re.I)) for text in texts for one in text.splitlines())
        found(f"1 of {want}")
        return want

    want = look_for("popc", "popc")
    assert want == 3, "in the source, in PTX and in SASS"
    panes = []
    for n in range(want):
        assert page.locator("#found").inner_text() == f"{n + 1} of {want}"
        at = page.locator(".l.found")
        panes.append(at.evaluate("e => e.closest('.pane').id"))
        assert at.locator("mark").all_inner_texts()[0].lower() == "popc" and at.is_visible()
        page.keyboard.press("Enter")
    assert panes == ["source", "ptx", "sass"] and page.locator("#found").inner_text() == "1 of 3"
    page.keyboard.press("Shift+Enter")
    assert page.locator("#found").inner_text() == "3 of 3"
    page.locator("#find").fill("R[0-9]+\\.64")
    found("no match")
    assert page.locator("#find").get_attribute("aria-invalid") == "true" and page.locator("#find-on").is_disabled()
    page.get_by_role("button", name="Regular expression").click()
    look_for("R[0-9]+\\.64", r"R[0-9]+\.64")
    page.locator("#find").fill("(")
    found("bad pattern")
    page.locator("#find").press("Escape")
    assert page.locator("mark").count() == 0 and page.locator("#found").inner_text() == ""


@pytest.mark.browser
def test_blocks_fold_and_a_step_unfolds_them(page_file, built, visit):
    page = visit(page_file)
    function, kernel = built[0]
    heads = page.locator("#sass .l.b")
    assert heads.count() == len(kernel.blocks)
    loop = next(b for b in kernel.blocks if b["loop_depth"] == 1)
    inside = [r for r in kernel.rows if r["block"] == loop["number"]]
    head = page.locator(f"#sass .l.b[data-block='{loop['number']}']")
    says = head.inner_text()
    assert f"{len(inside)} instructions" in says and "loop depth 1" in says
    assert f"{sum(r['stall'] for r in inside)} stall cycles" in says
    head.click()
    assert head.get_attribute("aria-expanded") == "false"
    assert page.locator("#sass .l.i").count() == len(kernel.rows) - len(inside)
    tab(page, RSQRT[0])
    line(page, "source", RSQRT[1]).hover()
    assert "kin" in head.get_attribute("class"), "a folded block lights up for what it hides"
    line(page, "source", RSQRT[1]).click()
    assert head.get_attribute("aria-expanded") == "true"
    assert page.locator("#sass .l.step").get_attribute("data-address") == str(addresses(tones(function)[0][RSQRT])[0])
    page.keyboard.press("Shift+F")
    assert page.locator("#sass .l.i").count() == 0 and heads.count() == len(kernel.blocks)
    page.get_by_role("button", name="Unfold").click()
    assert page.locator("#sass .l.i").count() == len(kernel.rows)


@pytest.mark.browser
def test_sass_is_coloured_by_pipe_stall_registers_or_a_figure(page_file, built, visit):
    page = visit(page_file)
    kernel = built[0][1]
    ground = "rows => rows.map(r => getComputedStyle(r.querySelector('.band')).backgroundColor)"
    bands = lambda: page.locator("#sass .l.i").evaluate_all(ground)  # noqa: E731
    choice, legend = page.locator("#colour"), page.locator("#sass .legend")

    def groups(key):
        """Rows alike in `key` are alike in colour, others are not."""
        colours = defaultdict(set)
        for r, colour in zip(kernel.rows, bands(), strict=True):
            colours[key(r)].add(colour)
        return all(len(c) == 1 for c in colours.values()) and len(set.union(*colours.values())) == len(colours)

    assert choice.input_value() == "pipe" and groups(lambda r: r["pipe"])
    assert all(r["pipe"] in legend.inner_text() for r in kernel.rows)
    choice.select_option("stall")
    assert groups(lambda r: r["stall"]) and "stall" in legend.inner_text() and "15" in legend.inner_text()
    choice.select_option("live registers")
    assert groups(lambda r: r["live_registers"])
    assert str(max(r["live_registers"] for r in kernel.rows)) in legend.inner_text()
    choice.select_option(label="samples")
    assert groups(lambda r: kernel.figures.get(r["address"], {}).get("samples", 0))
    choice.select_option("none")
    assert set(bands()) == {"rgba(0, 0, 0, 0)"} and not legend.is_visible()
    page.keyboard.press("Escape")
    page.locator("#sass .scroll").focus()
    page.keyboard.press("c")
    assert choice.input_value() == "pipe"


@pytest.mark.slow
@pytest.mark.browser
def test_columns_say_the_control_code_and_can_be_put_away(page_file, built, visit):
    page = visit(page_file)
    kernel = built[0][1]
    page.locator("#sass summary").click()
    for name in ("reuse", "live registers", "encoding"):
        page.get_by_role("checkbox", name=name).check()
    for r in kernel.rows:
        said = page.locator(f"#sass .l[data-address='{r['address']}']").evaluate(
            "e => Object.fromEntries([...e.children].map(c => [c.className, c.textContent]))"
        )
        assert said["g c-address"] == f"{r['address']:04x}" and said["t"] == r["text"]
        assert said["c-waits"].split() == list(map(str, r["waits"])) or "".join(said["c-waits"].split()) == "".join(
            map(str, r["waits"])
        )
        read, wrote = r["read_barrier"], r["write_barrier"]
        sets = [f"R{read}"] * (read is not None) + [f"W{wrote}"] * (wrote is not None)
        assert said["c-set"].split() == sets and said["c-stall"] == str(r["stall"])
        assert (said["c-yield"] == "Y") == r["may_yield"] and said["c-pipe"] == r["pipe"]
        assert said["c-width"] == str(r["width"] or "") and said["c-live"] == str(r["live_registers"])
        assert "".join(said["c-reuse"].split()) == "".join(map(str, r["reuse"])) and said["c-encoding"] == r["encoding"]
    for name in ("address", "control", "pipe", "width", "samples"):
        page.get_by_role("checkbox", name=name, exact=True).uncheck()
    assert page.locator(".l .c-address, .c-waits, .c-stall, .c-pipe, .c-width, .c-figure").count() == 0
    page.keyboard.press("Escape")
    assert not page.locator("#columns").is_visible()


@pytest.mark.browser
def test_another_kernel_comes_on_stage(page_file, built, visit):
    page = visit(page_file)
    assert page.locator("#kernel option").all_inner_texts() == [f"{c.name} · {c.target}" for _, c in built]
    line(page, "source", LOAD[1]).click()
    page.locator("#kernel").select_option("1")
    function, kernel = built[1]
    shown = page.locator("#sass .l.i .t").all_inner_texts()
    assert shown == [r["text"] for r in kernel.rows]
    assert not page.locator("#pin").is_visible()
    line(page, "source", ATOMIC[1]).hover()
    assert lit(page, "sass", "kin", "address") == addresses(tones(function)[0][ATOMIC])


@pytest.mark.browser
def test_summary_and_flow(page_file, built, visit):
    page = visit(page_file, height=900)
    kernel = built[0][1]
    assert "12.3 µs" in page.locator(".strip").inner_text() and "registers" in page.locator(".strip").inner_text()
    page.get_by_role("button", name="Summary").click()
    summary = page.locator("#summary")
    assert all(word in summary.inner_text() for word in (kernel.symbol, "occupancy", "1024", "81 %"))
    assert summary.locator("table").count() == 2
    page.get_by_role("button", name="Flow").click()
    boxes = page.locator("#flow g.box")
    assert boxes.count() == len(kernel.blocks)
    drawn = page.locator("#flow .edge").evaluate_all(
        "e => e.map(x => [Number(x.dataset.from), Number(x.dataset.to), x.classList.contains('back')])"
    )
    want = {(b["number"], f) for b in kernel.blocks for f in b["follows"]}
    assert {(a, b) for a, b, _ in drawn} == want and len(drawn) == len(want)
    assert all(back == (b <= a) for a, b, back in drawn), "in this kernel, back in address is back in flow"
    places = boxes.evaluate_all(
        "e => e.map(x => { const r = x.getBoundingClientRect(); return [r.x, r.y, r.width, r.height] })"
    )
    for n, (x, y, w, h) in enumerate(places):
        assert all(x + w <= u or u + w <= x or y + h <= v or v + h <= y for u, v, _, _ in places[:n]), "boxes overlap"
    last = kernel.blocks[-1]["number"]
    page.locator(f"#flow g.box[data-b='{last}']").click()
    head, room = (
        page.locator(f"#sass .l.b[data-block='{last}']").bounding_box(),
        page.locator("#sass .scroll").bounding_box(),
    )
    assert room["y"] <= head["y"] < room["y"] + room["height"]
    rsqrt_block = next(r["block"] for r in kernel.rows if "MUFU.RSQ" in r["text"])
    tab(page, RSQRT[0])
    line(page, "source", RSQRT[1]).hover()
    assert "kin" in page.locator(f"#flow g.box[data-b='{rsqrt_block}']").get_attribute("class")


@pytest.mark.browser
def test_everything_can_be_done_with_keys_alone(page_file, built, visit):
    page = visit(page_file, width=1280, height=800)
    function, _ = built[0]
    focused = "document.activeElement.closest('.pane')?.id ?? document.activeElement.id"
    page.keyboard.press("1")
    assert page.evaluate(focused) == "source"
    ring = "getComputedStyle(document.querySelector('#source .body'), '::after').borderTopWidth"
    assert page.evaluate(ring) == "2px", "focus is seen"
    page.keyboard.press("Home")
    for _ in range(POPC[1] - 1):
        page.keyboard.press("ArrowDown")
    mine = addresses(tones(function)[0][POPC])
    assert page.locator("#source .l.cursor").get_attribute("data-line") == str(POPC[1])
    assert page.evaluate(
        "document.getElementById(document.activeElement.getAttribute('aria-activedescendant')).dataset.line"
    ) == (str(POPC[1]))
    assert page.locator("#says").inner_text().startswith(f"planted.cu:{POPC[1]}")
    page.keyboard.press("Enter")
    assert page.locator("#step").inner_text() == f"1 of {len(mine)}"
    page.keyboard.press("n")
    assert page.locator("#sass .l.step").get_attribute("data-address") == str(mine[1])
    page.keyboard.press("Escape")
    row(page, function.instructions[3].address).hover()
    page.keyboard.press("4")
    assert page.evaluate(focused) == "sass"
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    assert page.locator("#sass .l.b[data-block='0']").get_attribute("aria-expanded") == "false"
    page.keyboard.press("ArrowRight")
    assert page.locator("#sass .l.b[data-block='0']").get_attribute("aria-expanded") == "true"
    page.keyboard.press("End")
    last = function.instructions[-1]
    assert page.locator("#sass .l.cursor").get_attribute("data-address") == str(last.address)
    page.wait_for_timeout(200)
    assert page.locator("#says").inner_text().startswith(f"{last.address:04x}"), "lines moved under a mouse at rest"
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#keys").is_visible()
    page.keyboard.press("g")
    assert page.locator("#flow").is_visible()
    page.locator("#flow g.box").nth(2).focus()
    page.keyboard.press("Enter")
    divider = page.get_by_role("separator", name="Between Source and PTX")
    divider.focus()
    before = page.locator("#source").bounding_box()["width"]
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.locator("#source").bounding_box()["width"] == pytest.approx(before + 48, abs=2)
    page.keyboard.press("Home")
    assert page.locator("#source").bounding_box()["width"] == pytest.approx(before, abs=2)
    page.keyboard.press("k")
    assert page.evaluate(focused) == "kernel"
    unnamed = "e => e.filter(x => !(x.textContent.trim() || x.ariaLabel || x.labels?.length)).length"
    assert page.locator("button, select, input, summary, [role=separator]:not([hidden])").evaluate_all(unnamed) == 0


@pytest.mark.browser
def test_dividers_are_dragged_and_panes_put_away(page_file, visit):
    page = visit(page_file, width=1280, height=800)
    divider = page.get_by_role("separator", name="Between PTX and SASS")
    box, before = divider.bounding_box(), page.locator("#ptx").bounding_box()["width"]
    page.mouse.move(box["x"] + 2, 400)
    page.mouse.down()
    page.mouse.move(box["x"] - 78, 400, steps=4)
    page.mouse.up()
    assert page.locator("#ptx").bounding_box()["width"] == pytest.approx(before - 80, abs=3)
    page.get_by_role("button", name="PTX", exact=True).click()
    assert not page.locator("#ptx").is_visible()
    assert page.get_by_role("separator", name="Between Source and SASS").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 1280


@pytest.mark.browser
def test_an_ir_gets_a_pane_of_its_own(built, tmp_path, visit):
    _, kernel = built[0]
    rows = [{**r, "ir_line": n % 5 + 1} for n, r in enumerate(kernel.rows)]
    ir = "module {\n  %0 = tt.load %x : tensor<8xf32>\n  // a\n  %1 = math.rsqrt %0\n}\n"
    path = code.write(
        [Code("a/triton", "sm_90", "k", "triton", rows, kernel.sources, kernel.ptx, ir, "ttgir")], tmp_path / "ir.html"
    )
    page = visit(path)
    assert page.locator("#ir h2").inner_text() == "TTGIR" and page.locator("#ir .l").count() == 5
    line(page, "ir", 4).hover()
    mine = [r for r in rows if r["ir_line"] == 4]
    assert lit(page, "sass", "kin", "address") == [r["address"] for r in mine]
    assert lit(page, "ptx", "kin", "line") == sorted({r["ptx_line"] for r in mine})
    assert lit(page, "source", "kin", "line") == sorted({r["source_line"] for r in mine if r["source_file"] == FILE})
    line(page, "ptx", mine[0]["ptx_line"]).hover()
    assert 4 in lit(page, "ir", "kin", "line")
    row(page, mine[0]["address"]).hover()
    assert lit(page, "ir", "kin", "line") == [4]


@pytest.mark.browser
def test_light_and_dark(page_file, visit):
    ground = "getComputedStyle(document.querySelector('#sass')).backgroundColor"
    ink = "getComputedStyle(document.querySelector('#sass .t')).color"
    page = visit(page_file, scheme="dark")
    dark = page.evaluate(ground), page.evaluate(ink)
    page.get_by_role("button", name="Light").click()
    light = page.evaluate(ground), page.evaluate(ink)
    assert light[0] != dark[0] and light[1] != dark[1]
    other = visit(page_file)
    assert (other.evaluate(ground), other.evaluate(ink)) == light
    other.keyboard.press("t")
    assert (other.evaluate(ground), other.evaluate(ink)) == dark


@pytest.mark.browser
def test_of_a_long_kernel_only_what_is_seen_is_in_the_page(built, tmp_path, visit):
    function, kernel = built[0]
    size = len(kernel.rows)
    rows = [
        {**r, "address": r["address"] + copy * size * 16, "block": r["block"] + copy * 100}
        for copy in range(70)
        for r in kernel.rows
    ]
    path = code.write([Code("a/long", "sm_90", "k", "", rows, kernel.sources, kernel.ptx)], tmp_path / "long.html")
    page = visit(path, width=1280, height=800)
    assert page.locator(".l").count() < 400
    line(page, "source", ATOMIC[1]).click()
    each = addresses(tones(function)[0][ATOMIC])
    assert page.locator("#step").inner_text() == f"1 of {70 * len(each)}"
    page.keyboard.press("p")
    page.locator("#sass .l.step").wait_for()
    assert page.locator("#sass .l.step").get_attribute("data-address") == str(each[-1] + 69 * size * 16)
    assert page.locator("#sass .l").count() < 150
    page.locator("#sass .scroll").evaluate("e => { e.scrollTop = 0 }")
    page.locator("#sass .l[data-address='0']").wait_for()


@pytest.mark.browser
def test_rows_without_places_and_no_kernels_are_pages_too(built, tmp_path, visit):
    _, kernel = built[0]
    bare = [{**r, "source_file": None, "source_line": None, "inlined": (), "ptx_line": None} for r in kernel.rows]
    path = code.write([Code("a/b", "sm_90", "planted", "", bare, {}), kernel], tmp_path / "bare.html")
    page = visit(path)
    assert not page.locator("#source").is_visible() and not page.locator("#ptx").is_visible()
    row(page, 0).click()
    assert not page.locator("#steps").is_visible() and lit(page, "sass", "kin", "address") == [0]
    page.locator("#kernel").select_option("1")
    assert page.locator("#source").is_visible() and page.locator("#ptx .l").count() > 50
    none = tmp_path / "none.html"
    none.write_text(code.render([], "none"))
    assert "No kernels" in visit(none, shown=False).locator("body").inner_text()
