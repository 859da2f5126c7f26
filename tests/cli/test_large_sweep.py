"""A sweep that takes hours by a typing error says so before it begins."""

from assay.bench import verb
from command import assay


def test_a_large_sweep_says_how_large_it_is_before_it_begins(monkeypatch):
    monkeypatch.setattr(verb, "run", lambda *plans_and_options: iter(()))
    said = assay("bench", "gelu/torch", "--against", "inductor", "--axis", "n=1..100:+1", "--budget", "2").err
    assert "100 workloads, which is 200 measurements of up to about 2 s each" in said and "x2" in said
    assert "workloads" not in assay("bench", "gelu/torch", "--axis", "n=1..8").err
