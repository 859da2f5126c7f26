"""Studies on a PostgreSQL server: what `tests/search` shows of a file holds there, too."""

import pytest

pytest.importorskip("optuna")

from search_kill import killed_twice


@pytest.mark.slow
def test_a_study_on_a_server_survives_the_kill_of_its_process_and_of_a_worker(server, tmp_path):
    killed_twice(tmp_path, server)
