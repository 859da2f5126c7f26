"""Trees are read by many threads at once: jobs of one check run side by side."""

import ast
import gc
import threading
import time
from pathlib import Path

import pytest

from assay import syntax

TEXT = Path(syntax.__file__).with_name("op.py").read_text()


@pytest.fixture
def collecting():
    """Collections in the middle of a tree, each letting another thread in."""

    def elsewhere(phase: str, info: dict) -> None:
        time.sleep(0.0001)

    before = gc.get_threshold()
    gc.callbacks.append(elsewhere)
    gc.set_threshold(300)
    yield
    gc.set_threshold(*before)
    gc.callbacks.remove(elsewhere)


def test_threads_do_not_disturb_each_other(collecting):
    wanted, found = ast.dump(ast.parse(TEXT)), []
    threads = [threading.Thread(target=lambda: found.append(syntax.module(TEXT))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [ast.dump(tree) for tree in found] == [wanted] * 8


def test_an_expression_is_the_part_after_the_equals_sign():
    assert ast.unparse(syntax.expression("(1 + x) * 2")) == "(1 + x) * 2"
    with pytest.raises(SyntaxError):
        syntax.expression("x = 1")
