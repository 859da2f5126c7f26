"""A sweep in a file: every setting is of its type, or refused by name; the command line takes precedence."""

import pytest

from assay.bench import planning
from assay.bench.sweep_file import SweepFile, from_file
from assay.cli.main import app
from assay.errors import UsageError


@pytest.fixture
def read(tmp_path):
    def written(text):
        file = tmp_path / "s.toml"
        file.write_text(text)
        return from_file(file)

    return written


def test_names_and_sizes_may_be_text_or_lists(read):
    whole = SweepFile(("gelu", "sum"), ("bf16", "fp32"), ("torch",), {"n": [8, 16, 32]}, 7, 2.0)
    rest = "rounds = 7\nbudget = 2\n[axes]\n"
    assert read(f'kernels = "gelu, sum"\ndtype = "bf16,fp32"\nagainst = "torch"\n{rest}n = "8..32:x2"') == whole
    assert (
        read(f'kernels = ["gelu", "sum"]\ndtype = ["bf16", "fp32"]\nagainst = ["torch"]\n{rest}n = [8, 16, 32]')
        == whole
    )
    assert read("[axes]\nn = 8").axes == {"n": [8]}


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        ("kernel = 3", "'kernel' is no setting of a sweep", "known: against, axes"),
        ("kernels = [1]", "kernels = [1] is no list of names", '["layernorm", "gelu/triton"]'),
        ("dtype = 32", "dtype = 32 is no list of names", '"bf16,fp32"'),
        ("axes = 5", "axes = 5 is no table of axes", "write [axes]"),
        ('[axes]\nn = ["a"]', "axis n = ['a'] is no list of sizes", 'n = "1024..65536:x2"'),
        ("[axes]\nn = true", "axis n = True is no list of sizes", 'n = "1024..65536:x2"'),
        ("[axes]\nn = []", "axis n = [] is no list of sizes", 'n = "1024..65536:x2"'),
        ('[axes]\nn = "9..1"', "'9..1' is not a list of sizes", "1024..65536:x2"),
        ('rounds = "ten"', "rounds = 'ten' is no number of rounds", "from 5 on"),
        ("rounds = 2", "rounds = 2 is no number of rounds", "from 5 on"),
        ("budget = -1", "budget = -1 is no time", "0.1 or more"),
        ("kernels = [1", "s.toml: Unclosed array", "docs/bench.md"),
    ],
)
def test_a_setting_of_the_wrong_type_is_refused_with_what_to_write(read, text, what, fix):
    with pytest.raises(UsageError) as problem:
        read(text)
    assert what in problem.value.what and "s.toml" in problem.value.what and fix in problem.value.fix


class Planned(Exception):
    """Ends the command with the options that it made."""


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ([], (("bf16",), ("inductor",), 7, 2.0)),
        (["--rounds", "10", "--budget", "8"], (("bf16",), ("inductor",), 10, 8.0)),
        (["--against", "torch", "--dtype", "fp32"], (("fp32",), ("torch",), 7, 2.0)),
    ],
)
def test_an_option_of_the_command_line_takes_precedence_even_if_it_is_the_default(
    more, expected, tmp_path, monkeypatch
):
    file = tmp_path / "s.toml"
    file.write_text('kernels = ["sum"]\ndtype = "bf16"\nagainst = "inductor"\nrounds = 7\nbudget = 2\n')

    def stop(what, options):
        raise Planned(options)

    monkeypatch.setattr(planning, "plan", stop)
    with pytest.raises(Planned) as ended:
        app(["bench", "--sweep", str(file), *more], standalone_mode=False)
    (options,) = ended.value.args
    assert (options.dtypes, options.against, options.rounds, options.budget) == expected
