"""A model of text: how much of each text it was given is in the record, and in the command that repeats it."""

import pytest

import made_reviews as made
from assay.compress import planning
from assay.compress.curve import run
from assay.compress.evidence import CompressEvidence
from assay.compress.planning import Quantize
from assay.models.subject.data.datasets import DATASETS
from assay.models.subject.zoo import encoder

pytest.importorskip("tokenizers", reason="no tokenizers here: pip install 'kernel-assay[models]'")


@pytest.mark.parametrize(
    ("asked", "tokens", "label"), [({"tokens": 9}, 9, ",tokens=9"), ({"quick": True}, 128, ",quick"), ({}, 512, "")]
)
def test_the_tokens_are_in_the_record_and_in_its_replay(tmp_path, monkeypatch, one_thread, asked, tokens, label):
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(encoder, "VOCABULARY", 200)
    monkeypatch.setitem(DATASETS, "imdb", made.data_set(tmp_path))
    options = Quantize(formats=("fixed:8:4",), methods=("ptq",), device="cpu", **asked)
    records = list(run(planning.quantize("bert-tiny", options)))
    assert [str(r.status) for r in records] == ["pass", "pass"]
    for record in records:
        assert CompressEvidence.of(record).sizes.tokens == tokens
        assert record.workload.endswith(f"seed=0{label}")
        assert ("--tokens 9" in record.replay) == ("tokens" in asked)
