"""The pages, for the tests that read them and those that use them in a browser."""

import pytest

from assay import host
from assay.report import code, report
from code_page import FILE, HEADER, INCLUDED, SOURCE, made
from made_records import everything


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Two instances and, by symbol, what nvdisasm says of them. The header is found by a line marker, not on disk."""
    if host.tool("nvdisasm") is None or not host.has("cuda.bindings"):
        pytest.skip("no nvdisasm or NVRTC here")
    text = f'#line 1 "{INCLUDED}"\n{HEADER}#line 1 "{FILE}"\n' + SOURCE.replace('#include "planted.cuh"', "")
    return [made(text, name, target) for name, target in (("planted<3>", "sm_90"), ("planted<4>", "sm_80"))]


@pytest.fixture(scope="module")
def page_file(built, tmp_path_factory):
    return code.write([c for _, c in built], tmp_path_factory.mktemp("code") / "deep" / "page.html", "A <b>title</b>")


@pytest.fixture
def visit(browser):
    """Open a page, tall enough that all of a small kernel is drawn; nothing may be complained of or asked for."""
    trouble, contexts = [], []

    def go(path, width=1600, height=2600, scheme="light", shown=True):
        contexts.append(browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme))
        page = contexts[-1].new_page()
        page.on("console", lambda m: trouble.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: trouble.append(str(e)))
        page.on("request", lambda r: trouble.append(r.url) if not r.url.startswith("file:") else None)
        page.goto(path.as_uri())
        if shown:
            page.locator("html[data-shown]").wait_for(state="attached")
        return page

    yield go
    for context in contexts:
        context.close()
    assert not trouble


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return report(everything(), tmp_path_factory.mktemp("report") / "deep" / "page.html", title="A <b>title</b> & more")
