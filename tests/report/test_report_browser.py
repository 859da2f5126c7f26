"""The report in a real browser: every chart is drawn, filtered, hovered and sorted."""

import pytest

from assay.report import report
from made_records import OF_KERNELS, SOME


@pytest.fixture
def visit(browser):
    """Open a page; at the end nothing may have been complained of or asked from outside."""
    trouble, contexts = [], []

    def go(path, width=1280, scheme="light"):
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme))
        page = contexts[-1].new_page()
        page.on("console", lambda m: trouble.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: trouble.append(str(e)))
        page.on(
            "request", lambda r: trouble.append(r.url) if not r.url.startswith(("file:", "data:", "blob:")) else None
        )
        page.goto(path.as_uri())
        drawn(page, 1)
        return page

    yield go
    for context in contexts:
        context.close()
    assert not trouble


def drawn(page, turn):
    page.wait_for_function(f"Number(document.documentElement.dataset.drawn) >= {turn}", timeout=30_000)


@pytest.mark.slow
@pytest.mark.browser
def test_every_chart_is_drawn_and_the_page_fits(whole, visit):
    page = visit(whole)
    for figure in OF_KERNELS:
        marks = page.locator(f"#{figure.name} svg [role=graphics-symbol]").count()
        assert marks > 5, f"{figure.name}: {marks} marks"
        box = page.locator(f"#{figure.name} svg.marks").bounding_box()
        room = page.locator(f"#{figure.name} .scroll:has(svg.marks)").bounding_box()
        assert box["width"] <= room["width"] + 1, f"{figure.name} is wider than a laptop's page"
    assert page.evaluate("document.documentElement.scrollWidth") == 1280
    narrow = visit(whole, width=420)
    assert narrow.evaluate("document.documentElement.scrollWidth") == 420


@pytest.mark.slow
@pytest.mark.browser
def test_filtering_changes_tables_and_charts(whole, visit):
    page = visit(whole)
    shown = "#every tbody tr:not([hidden])"
    everything_shown = page.locator(shown).count()
    before = page.locator("#copy svg [role=graphics-symbol]").count()
    page.locator("select[name=op]").select_option("gelu")
    drawn(page, 2)
    assert 0 < page.locator(shown).count() < everything_shown
    assert all(op == "gelu" for op in page.locator(shown).evaluate_all("rows => rows.map(r => r.dataset.op)"))
    assert 0 < page.locator("#copy svg [role=graphics-symbol]").count() < before
    assert "conv2d" not in page.locator("#verdicts svg").inner_html()
    assert page.locator("#runtime select option").evaluate_all("o => o.every(x => x.textContent.startsWith('gelu'))")
    page.locator("input[name=text]").fill("no such thing")
    drawn(page, 3)
    assert page.locator(shown).count() == 0 and page.locator("#verdicts .empty").is_visible()
    page.get_by_role("button", name="Clear").click()
    drawn(page, 4)
    assert page.locator(shown).count() == everything_shown
    assert page.locator("#copy svg [role=graphics-symbol]").count() == before


@pytest.mark.browser
def test_a_menu_shows_another_case(whole, visit):
    page = visit(whole)
    first = page.locator("#runtime svg").inner_html()
    page.locator("#runtime select").select_option(index=3)
    page.wait_for_function("old => document.querySelector('#runtime svg').innerHTML !== old", arg=first)


@pytest.mark.slow
@pytest.mark.browser
def test_hovering_says_what_a_mark_is(whole, visit):
    page = visit(whole)
    for figure, words in (
        ("roofline", ("Kernel", "Workload", "Bandwidth", "B/s", "%")),
        ("verdicts", ("Covers", "checks")),
    ):
        page.locator(f"#{figure}").scroll_into_view_if_needed()
        page.locator(f"#{figure} svg .mark-symbol path[role=graphics-symbol]").last.hover(force=True)
        tip = page.locator("#vg-tooltip-element.visible")
        tip.wait_for(timeout=30_000)
        assert all(word in tip.inner_text() for word in words), tip.inner_text()


@pytest.mark.slow
@pytest.mark.browser
def test_light_and_dark(whole, visit):
    """As the system is, and as the reader wants: page and charts together."""
    ink = "getComputedStyle(document.querySelector('#runtime svg .role-axis-label text')).fill"
    ground = "getComputedStyle(document.body).backgroundColor"
    page = visit(whole, scheme="dark")
    dark = page.evaluate(ink), page.evaluate(ground)
    page.get_by_role("button", name="Light").click()
    drawn(page, 2)
    light = page.evaluate(ink), page.evaluate(ground)
    assert light[0] != dark[0] and light[1] != dark[1]
    other = visit(whole, scheme="light")
    assert (other.evaluate(ink), other.evaluate(ground)) == light


@pytest.mark.browser
def test_tables_sort_and_everything_is_reached_by_keyboard(whole, visit):
    page = visit(whole)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    heading = page.locator("#fastest thead button", has_text="time")
    heading.focus()
    page.keyboard.press("Enter")
    times = "cells => cells.map(c => Number(c.dataset.sort))"
    up = page.locator("#fastest tbody td:nth-child(4)").evaluate_all(times)
    page.keyboard.press("Enter")
    down = page.locator("#fastest tbody td:nth-child(4)").evaluate_all(times)
    assert up == sorted(up) and down == up[::-1] and len(set(up)) > 1
    unnamed = "e => e.filter(x => !(x.textContent.trim() || x.ariaLabel || x.labels?.length)).length"
    assert page.locator("button, select, input, summary, a").evaluate_all(unnamed) == 0


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("keep", [{"check"}, {"bench"}, {"selftest"}, {"machine"}], ids=str)
def test_a_partial_page_works_too(tmp_path, visit, keep):
    path = report([r for r in SOME if r.verb in keep], tmp_path / "page.html")
    assert visit(path).locator("h1").inner_text()
