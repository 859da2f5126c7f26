"""Every kind of bad input meets a sentence of its own, with file and line where there is one and with what to do; never
a traceback, never a hang. What was named beside it is judged all the same."""

import json
import os
import re

import pytest
from junitparser import JUnitXml

import assay as package
import bad_declarations  # noqa: F401  (adds its kinds)
from assay.catalog import executed
from assay.catalog.select import gather
from assay.errors import UsageError
from assay.worker import limits
from bad_input import CASES, GOOD, POINT
from command import assay


def put(path, content):
    """Text, bytes, or a function that makes the file."""
    content(path) if callable(content) else path.write_bytes(
        content if isinstance(content, bytes) else content.encode()
    )


@pytest.fixture(scope="session")
def seen():
    """What each kind was told, without its names and numbers → the kind."""
    return {}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_told_what_and_where_and_what_to_do(name, tmp_path, monkeypatch, seen):
    case = CASES[name]
    monkeypatch.setattr(executed, "PATIENCE", 1.0 if "hangs" in name else 60.0)
    monkeypatch.setattr(limits, "LEAST_COMPILING", 3.0 if "hangs" in name else 30.0)
    for file, content in case.files.items():
        put(tmp_path / file, content)
    done = assay(*(word.replace("{}", str(tmp_path)) for word in case.command))
    for fragment in case.says:
        assert fragment in done.said, f"{fragment!r} is not in: {done.out}{done.err}"
    assert done.code == case.code, done.out + done.err
    assert "Traceback" not in done.said and "Assay's own" not in done.said
    told = done.err if case.code == 2 else done.out
    assert seen.setdefault(normal(told, tmp_path), name) == name, "two kinds meet one refusal"


def normal(text, folder=""):
    """Without paths, names and numbers: the sentence itself."""
    text = " ".join(text.replace(str(folder), "").split()) if folder else text
    text = re.sub(r"'[^']*'|`[^`]*`|\"[^\"]*\"", "_", text)
    return re.sub(r"-?\d+(\.\d+)?", "#", text)


@pytest.mark.parametrize("verb", ["check", "bench", "inspect", "machine"])
def test_a_setting_that_a_verb_does_not_have_is_refused_with_the_nearest_one(verb):
    with pytest.raises(UsageError, match="no setting called 'sed'") as refused:
        list(getattr(package, verb)(sed=1))
    assert "it takes" in refused.value.fix


def test_the_kinds_reach_as_many_refusals():
    """Each kind asks for a sentence that is in no other's, so that each of these tests stands for another refusal."""
    assert len(CASES) >= 160
    asked = {name: [normal(s) for s in case.says] for name, case in CASES.items()}
    for name, sentences in asked.items():
        others = [o for o, theirs in asked.items() if o != name and all(s in " ".join(theirs) for s in sentences)]
        assert not others, f"{name} asks for nothing that {others} do not ask for"


BESIDE = [name for name, case in CASES.items() if "f.py" in case.files and case.code == 2]


@pytest.mark.parametrize("name", BESIDE)
def test_what_is_named_beside_it_is_still_chosen(name, tmp_path, monkeypatch):
    monkeypatch.setattr(executed, "PATIENCE", 1.0)
    case = CASES[name]
    for file, content in ({"good.py": GOOD} | case.files).items():
        put(tmp_path / file, content)
    found = gather([tmp_path / "f.py", tmp_path / "good.py"])
    assert (tmp_path / "good.py").resolve() in [kernel.file for kernel, _ in found.choices]


def test_one_good_kernel_among_many_bad_files_has_its_verdict(tmp_path):
    """And the others, each its sentence."""
    chosen = ["a folder", "a pipe", "UTF-16", "a syntax error", "an unknown backend", "no axes", "an address twice"]
    files = []
    for name in chosen:
        path = tmp_path / f"bad{len(files)}.py"
        put(path, CASES[name].files["f.py"])
        files.append(path)
    good = tmp_path / "good.py"
    # A bad kernel stands in the same file as the good one, too.
    good.write_text(GOOD + "@kernel(5)\ndef wrong(x, *, out): ...\n")
    done = assay("check", *files[:4], good, *files[4:], *POINT)
    assert done.code == 2
    assert "gelu/torch:honest fp32 ✓ pass" in done.said
    assert done.err.count("assay: ") == len(files) + 2, done.err  # of a refused op's kernel it is said, too


def test_a_byte_order_mark_and_a_declared_encoding_are_read(tmp_path):
    (tmp_path / "bom.py").write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    (tmp_path / "latin.py").write_bytes(
        b"# -*- coding: latin-1 -*-\n# gr\xfc\xdfe\n" + GOOD.replace("honest", "too").encode()
    )
    done = assay("check", tmp_path / "bom.py", tmp_path / "latin.py", *POINT)
    assert done.code == 0, done.said
    assert "2 pass" in done.said


def test_an_unknown_gate_refuses_its_kernel_only(tmp_path):
    file = tmp_path / "gates.py"
    file.write_text(GOOD + '@kernel("gelu", backend="torch", expects={"spillz": 0})\ndef wrong(x, *, out): ...\n')
    for command in ("check", "inspect"):
        done = assay(command, file, *POINT)
        assert done.code == 2 and "gelu/torch:honest" in done.said, done.said
        assert "expects 'spillz', which is no gate" in done.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read all")
def test_a_file_that_one_may_not_read_is_said(tmp_path):
    file = tmp_path / "f.py"
    file.write_text(GOOD)
    file.chmod(0)
    done = assay("check", file)
    assert done.code == 2 and "cannot be read: Permission denied" in done.said


@pytest.mark.parametrize("verb", ["check", "bench", "run", "inspect"])
def test_files_that_were_asked_for_are_written_when_everything_is_refused(verb, tmp_path):
    """Otherwise a CI service reads nothing, or the files of the run before."""
    out, junit = tmp_path / "out.json", tmp_path / "junit.xml"
    out.write_text("of the run before")
    done = assay(verb, tmp_path / "gone.py", "no_such_op", "--out", out, "--junit", junit)
    assert done.code == 2 and str(out) in done.out and str(junit) in done.out
    document = json.loads(out.read_text())
    assert document["verb"] == verb and document["records"] == []
    assert ["gone.py" in p["what"] for p in document["refused"]] == [True, False]
    (suite,) = JUnitXml.fromfile(str(junit))
    assert (suite.tests, suite.errors) == (2, 2)


def test_json_is_a_document_when_everything_is_refused():
    done = assay("check", "no_such_op", "--json")
    assert done.code == 2 and [p["what"] for p in json.loads(done.out)["refused"]] == ["no op called 'no_such_op'"]


def test_a_refused_command_whose_file_cannot_be_written_says_both_once(tmp_path):
    out = tmp_path / "file" / "out.json"
    out.parent.write_text("")
    done = assay("check", "no_such_op", "--out", out)
    assert done.code == 2 and done.err.count("could not be written") == done.err.count("no op called") == 1
