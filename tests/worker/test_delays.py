"""What a worker builds with delays stays in the folder that is removed with its zygote."""

from pathlib import Path

from assay.backends import backend
from assay.worker import delays, scratch


def test_code_is_changed_and_kept_where_no_other_process_looks(monkeypatch, tmp_path):
    monkeypatch.setenv(scratch.VARIABLE, str(tmp_path))
    given = []
    monkeypatch.setattr(type(backend("triton")), "rewrite", lambda self, change, folder: given.append((change, folder)))
    load = "\tld.global.f32 %f1, [%rd1];\n"
    for kind in ("random", "still"):
        before = delays.codes()
        delays.install("triton", kind)
        change, folder = given.pop()
        assert "nanosleep" in change(load) and delays.codes() == before + 1
        assert folder.is_dir() and folder.parent == tmp_path and folder != Path(scratch.folder())


def test_the_control_postpones_no_store(monkeypatch, tmp_path):
    monkeypatch.setenv(scratch.VARIABLE, str(tmp_path))
    given = []
    monkeypatch.setattr(type(backend("cuda")), "rewrite", lambda self, change, folder: given.append(change))
    code = "st.global.u32 [%a1], %r1;\natom.global.add.u32 %r9, [%a2], 1;\n"
    for kind in ("random", "still"):
        delays.install("cuda", kind)
    random, still = (change(code) for change in given)
    assert "%assay_after0" in random and "%assay_after0" not in still
