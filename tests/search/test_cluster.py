"""Trials on a Ray cluster: a lost node costs nothing, a command that ends leaves nothing, mistakes are explained."""

import signal
import socket
import time
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("optuna")
pytest.importorskip("ray", reason="no Ray here: pip install 'kernel-assay[cluster]'")

from hypothesis import given
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.search import cluster, device_lock, ray_nodes
from assay.search.cluster import Cluster
from ray_machine import Node
from search_kill import TRIALS, Running, of_trials, point

ROOT = Path(__file__).parents[2]
NODES = st.lists(st.fixed_dictionaries({"CPU": st.integers(0, 40), "GPU": st.integers(0, 8)}), max_size=5)


@pytest.fixture
def nodes():
    started = [Node()]
    try:
        started.append(Node(started[0]))
        yield started
    finally:
        for node in reversed(started):
            node.kill()


def until(condition):
    deadline = time.monotonic() + 180
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
def test_a_study_on_two_nodes_survives_ctrl_c_and_the_loss_of_one(nodes, tmp_path):
    """Thirty distinct finished trials in the end, none of them done twice but those that were running."""
    head, other = nodes
    first = Running(tmp_path, tmp_path / "s.sqlite", head=head)
    first.wait_for(8)
    first.process.send_signal(signal.SIGINT)
    assert first.process.wait(120) != 0
    first.process.stdout.close()
    until(lambda: not head.trials() + other.trials())
    assert head.alive() and other.alive()

    second = Running(tmp_path, tmp_path / "s.sqlite", head=head)
    second.wait_for(12)
    second.hold.touch()
    until(lambda: second.held() & {*other.trials()})
    lost = [where for pid, where in second.begun() if pid in other.trials()][-1]
    other.kill()
    second.hold.unlink()
    told = second.document()
    finished = of_trials(told["records"])
    assert len(finished) == len({point(e) for e in finished}) == TRIALS
    ended = {point(e): e["attempts"] for state in ("finished", "pruned") for e in of_trials(told["records"], state)}
    assert ended[lost] in (2, 3), "lost with its node, and perhaps interrupted by Ctrl-C before"
    again = {where for where, times in Counter(where for _, where in second.begun()).items() if times > 1}
    assert len(again) <= 4
    assert all(ended[where] > 1 for where in again)
    assert not told["heavy"]  # Ray is the business of a process beside the study
    until(lambda: not head.trials())
    assert head.alive()


def test_an_address_where_nobody_listens_is_told_at_once():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"  # bound, and not listening
        for written in (address, f"ray://{address}"):
            with pytest.raises(UsageError, match="no Ray cluster answers") as told, Cluster(written):
                pass
            assert "ray start --head" in told.value.fix


def test_the_commands_of_the_documentation_are_understood(assay):
    """But for the cluster, which is not there."""
    lines = (ROOT / "docs" / "search.md").read_text().partition("## More than one machine")[2].splitlines()
    commands = [line.partition("#")[0].split() for line in lines if line.startswith("    assay ")]
    assert len(commands) == 2
    for _, *words in commands:
        place = words.index("--ray") + 1
        words[place] = words[place].replace("FIRST:10001", "127.0.0.1:9").replace("auto", "127.0.0.1:9")
        done = assay(*words, "--quick")
        assert done.returncode == 2 and f"no Ray cluster answers at {words[place]}" in done.stderr


@pytest.mark.slow
def test_a_port_that_is_not_of_ray_is_given_up(monkeypatch):
    monkeypatch.setattr(cluster, "_CONNECT", 4.0)
    monkeypatch.setattr(cluster, "_CLOSE", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        address = f"127.0.0.1:{deaf.getsockname()[1]}"
        with pytest.raises(UsageError, match=f"{address}: no answer within 4 s"), Cluster(address):
            pass


def test_what_is_no_address_is_refused():
    with pytest.raises(UsageError, match="no Ray cluster answers at nowhere"), Cluster("nowhere"):
        pass


def test_a_cluster_of_our_own_on_this_machine_is_no_cluster():
    with pytest.raises(UsageError, match="'local' is no cluster"), Cluster("local"):
        pass


@pytest.mark.parametrize(
    ("problem", "said", "fix"),
    [
        ("AuthenticationError: RPC error: InvalidAuthToken", "at head:1 asks for a token", "RAY_AUTH_MODE=token"),
        ("No node info found matching attributes: ''", "this machine is no node of the cluster", "ray://HOST:10001"),
        ("Starting Ray client server failed. See x.err", "could not start a process", "try again"),
    ],
)
def test_what_keeps_ray_from_connecting_is_explained(problem, said, fix):
    raised = ConnectionError("Failed to connect to Ray cluster at head:1")
    raised.__cause__ = RuntimeError(problem)
    told = ray_nodes.explained("head:1", raised)
    assert said in told.what and fix in told.fix


def test_without_ray_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    with pytest.raises(UsageError) as told, Cluster("auto"):
        pass
    assert "kernel-assay[cluster]" in told.value.fix


HERE = {"host": "here", "python": "3.11.7", "assay": "1.2", "source": "abc"}


@pytest.mark.parametrize(
    ("differs", "said"),
    [
        ({"python": "3.12.1"}, r"far has Python 3\.12\.1, this machine 3\.11\.7"),
        ({"assay": "1.3"}, r"far has Assay 1\.3, this machine 1\.2"),
        ({"assay": "", "source": ""}, "far has no Assay"),
        ({"source": "def"}, "far has other source files of Assay 1.2"),
    ],
)
def test_a_node_with_other_versions_is_refused_and_named(differs, said):
    near = HERE | {"host": "near", "python": "3.11.9"}
    ray_nodes.verify([near], HERE)
    with pytest.raises(UsageError, match=said) as told:
        ray_nodes.verify([near, HERE | {"host": "far"} | differs], HERE)
    assert "install" in told.value.fix


def test_the_versions_of_this_machine_are_those_of_the_package_that_runs():
    import platform

    import assay

    here = ray_nodes.survey()()
    assert (here["python"], here["assay"]) == (platform.python_version(), assay.__version__)
    assert here == ray_nodes.survey()()


def test_a_cluster_with_another_python_is_explained_by_what_ray_says():
    """Ray compares them when it connects."""
    from ray._private.utils import check_version_info

    with pytest.raises(RuntimeError) as said:
        check_version_info({"ray_version": "2.51.0", "python_version": "3.12.1"}, "here")
    told = ray_nodes.explained("head:6379", said.value)
    assert "another version of Ray or Python" in told.what and "3.12.1" in told.what
    assert "same versions" in told.fix


@given(NODES, st.one_of(st.none(), st.integers(1, 50)), st.booleans())
def test_as_many_trials_as_fit_each_with_as_many_cores_as_fit(resources, workers, gpu):
    def fit(cores):
        return sum(min(n["CPU"] // cores, n["GPU"]) if gpu else n["CPU"] // cores for n in resources)

    if fit(1) == 0:
        with pytest.raises(UsageError, match="has no GPU" if gpu else "has no core"):
            ray_nodes.share(resources, workers, gpu)
        return
    slots, cores = ray_nodes.share(resources, workers, gpu)
    assert slots == min(workers or fit(1), fit(1))
    assert fit(cores) >= slots > fit(cores + 1)


def test_a_gpu_has_one_lock_whatever_part_of_the_gpus_a_process_sees(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert device_lock.name("cuda") == device_lock.name("cuda:0") != device_lock.name("cuda:1")
    second = device_lock.name("cuda:1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert device_lock.name("cuda") == second
    assert device_lock.name("cpu") == "cpu"
