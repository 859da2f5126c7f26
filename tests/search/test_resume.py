"""Nothing is lost: a study goes on after a kill, each point is done once, and what was running is run again."""

import time

import pytest

pytest.importorskip("optuna")

import search_run
from search_kill import Running, killed_twice, of_trials, point


@pytest.mark.slow
def test_a_study_that_is_killed_twice_ends_with_as_many_distinct_trials_as_were_asked_for(tmp_path):
    killed_twice(tmp_path, tmp_path / "studies.sqlite")


@pytest.mark.slow
def test_two_processes_share_a_study_and_do_no_point_twice(tmp_path):
    both = [Running(tmp_path, tmp_path / "s.sqlite", workers=1, sampler="random", trials=16) for _ in range(2)]
    documents = [one.document() for one in both]
    for told in documents:
        assert len({point(e) for e in of_trials(told["records"])}) == len(of_trials(told["records"])) == 16
    begun = both[0].begun()
    assert len({where for _, where in begun}) == len(begun)
    assert len({pid for pid, _ in begun}) == 2


@pytest.mark.slow
def test_what_is_known_is_told_again_without_a_trial_or_a_look_at_the_test_split(tmp_path):
    environment = {"SEARCH_LOG": str(tmp_path / "log")}
    first = list(search_run.study(tmp_path / "s.sqlite", trials=8, environment=environment))
    lines = (tmp_path / "log").read_text()
    second = list(search_run.study(tmp_path / "s.sqlite", trials=8, environment=environment))
    assert (tmp_path / "log").read_text() == lines
    assert [r.evidence for r in second] == [r.evidence for r in first]
    assert lines.count("test") == 1
    longer = list(search_run.study(tmp_path / "s.sqlite", trials=12, environment=environment))
    assert [r.evidence["parameters"] for r in longer[1:9]] == [r.evidence["parameters"] for r in first[1:9]]
    assert len(of_trials([r.to_dict() for r in longer])) == 12


def begun(log):
    return [tuple(line.split()[1:3]) for line in log.read_text().splitlines()]


def test_ctrl_c_keeps_what_was_done_and_the_next_run_begins_with_what_was_running(tmp_path):
    environment = {"SEARCH_LOG": str(tmp_path / "log"), "SEARCH_DELAY": "0.2"}
    records = search_run.study(tmp_path / "s.sqlite", trials=6, workers=2, environment=environment)
    seen = [next(records) for _ in range(2)]  # the control and a trial; another is running
    until = time.monotonic() + 240
    while not (given_up := {*begun(tmp_path / "log")} - {point(seen[1].evidence)}):
        assert time.monotonic() < until
        time.sleep(0.01)
    records.close()
    whole = list(search_run.study(tmp_path / "s.sqlite", trials=6, workers=1, environment=environment))
    assert [r.evidence for r in whole[:2]] == [r.evidence for r in seen]
    assert {point(whole[2].evidence)} == given_up
    assert whole[2].evidence["attempts"] == 2
    assert len(of_trials([r.to_dict() for r in whole])) == 6


@pytest.mark.slow
def test_a_trial_that_takes_too_long_or_too_much_memory_is_a_failed_record(tmp_path):
    greedy = {"SEARCH_LOG": str(tmp_path / "log"), "SEARCH_DELAY": "30"}
    records = list(search_run.study(tmp_path / "s.sqlite", trials=1, timeout=3, environment=greedy))
    assert [str(r.status) for r in records] == ["pass", "fail", "inconclusive"]
    assert "no answer within 3 s" in records[1].reason
    first = records[1].evidence["parameters"]
    hungry = {"SEARCH_LOG": str(tmp_path / "log"), "SEARCH_GREED": f"{first['a']},{first['b']}"}
    records = list(search_run.study(tmp_path / "t.sqlite", trials=1, memory=300 << 20, environment=hungry))
    assert "MiB of memory, more than it may have" in records[1].reason
