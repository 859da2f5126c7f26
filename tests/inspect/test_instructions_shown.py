"""An instruction is one row of one table at every width of the terminal: columns are left out by priority."""

import pytest

from assay.cli import screen
from assay.cli.inspect.instructions import instructions

COLUMNS = ["address", "stall", "wait", "set", "pipe", "live", "instruction", "line", "ptx"]
HERE, OTHER = "/home/me/kernels/rows.cu", "/opt/include/assay/warp.cuh"


def row(number, text, file=HERE, depth=0):
    return {
        "address": 16 * number,
        "stall": 4,
        "waits": (0, 2),
        "write_barrier": 1,
        "read_barrier": 0,
        "pipe": "uniform",
        "live_registers": 21,
        "loop_depth": depth,
        "text": text,
        "source_file": file,
        "source_line": 104,
        "ptx_line": 1250,
    }


TEXTS = ["LDG.E.128.CONSTANT R4, desc[UR6][R2.64+0x100]", "ISETP.GE.U32.AND P0, PT, R0, UR5, PT", "NOP"] * 20
ROWS = [row(i, text) for i, text in enumerate(TEXTS)]
LONG = row(99, "CALL.REL.NOINC `($__internal_0_$__cuda_sm20_div_s64_of_a_kernel_with_a_long_name)", depth=3)


def printed(rows, width, capsys, monkeypatch):
    """The lines of the table as a terminal of this width prints it, the head first, and what is left out."""
    monkeypatch.setenv("COLUMNS", str(width))
    table, left_out = instructions(rows, width)
    screen.print_parts([table], screen.console())
    return capsys.readouterr().out.splitlines(), left_out


@pytest.mark.parametrize(
    ("width", "left_out"),
    [
        (120, []),
        (100, []),
        (80, ["pipe", "ptx"]),
        (60, ["stall", "wait", "set", "pipe", "live", "ptx"]),
        (30, ["stall", "wait", "set", "pipe", "live", "line", "ptx"]),
    ],
)
def test_an_instruction_is_one_row_and_the_least_important_columns_are_left_out(width, left_out, capsys, monkeypatch):
    (head, *lines), left = printed([*ROWS, LONG], width, capsys, monkeypatch)
    assert left == left_out and head.split() == [c for c in COLUMNS if c not in left]
    assert all(len(line) <= width for line in (head, *lines))
    starts = [line for line in lines if line[: len("address")].strip()]
    assert len(starts) == len(ROWS) + 1 and "…" not in "".join(lines)
    assert [int(line.split()[0], 16) for line in starts] == [r["address"] for r in (*ROWS, LONG)]


def test_a_pipe_has_every_column_and_every_instruction_on_one_line():
    table, left_out = instructions([*ROWS, LONG], 1_000_000)
    assert not left_out and [c.header for c in table.columns] == COLUMNS
    assert "\n" not in str(table.columns[6].cell(LONG))


def test_a_long_instruction_goes_on_below_itself(capsys, monkeypatch):
    lines, _ = printed([*ROWS, LONG], 80, capsys, monkeypatch)
    first = next(i for i, line in enumerate(lines) if "CALL.REL.NOINC" in line)
    assert lines[first].endswith("104") and "sm20_div_s64_of_a" in lines[first + 1]


@pytest.mark.parametrize(
    ("other", "names"),
    [
        (HERE, ("104", "104")),
        (OTHER, ("rows.cu:104", "warp.cuh:104")),
        ("/opt/include/rows.cu", ("kernels/rows.cu:104", "include/rows.cu:104")),
    ],
    ids=["one file", "two files", "two files of one name"],
)
def test_the_line_names_its_file_where_several_files_take_part(other, names, capsys, monkeypatch):
    lines, _ = printed([row(0, "NOP"), row(1, "EXIT", other)], 100, capsys, monkeypatch)
    assert tuple(line.split()[-2] for line in lines[1:]) == names
