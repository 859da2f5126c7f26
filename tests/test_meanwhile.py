"""Work that is done while a verb waits."""

from assay import meanwhile


def test_work_is_done_once_and_its_errors_are_left_to_whoever_needs_it():
    done = []
    meanwhile.do()
    meanwhile.later(lambda: done.append(1))
    meanwhile.later(lambda: 1 // 0)
    meanwhile.do()
    meanwhile.do()
    assert done == [1]
