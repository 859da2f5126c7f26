"""Whatever a kernel puts on the channel to the parent, or does to it, fails that kernel with a sentence; the others go
on as if nothing had been."""

import pytest

import assay
from assay.check.verb import Options, plan, run

HEAD = '''
import ctypes, json, os, socket, stat, struct, threading, time
import torch
from assay import kernel
from assay.worker import channel as ours


def channel():
    """The parent's end is a socket, and the only one."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                return int(name)
        except OSError:
            pass


def arena():
    """The memory shared with the parent."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{name}").startswith("/memfd:assay "):
                return int(name)
        except OSError:
            pass


def say(data):
    os.write(channel(), data)


def framed(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def changing(change):
    """Every answer goes through `change` before it is sent, its nonce untouched."""
    send = ours.send
    ours.send = lambda connection, message: send(connection, change(message) if "answer" in message else message)


def told(**values):
    def change(message):
        message["answer"].update(values)
        return message
    return change


def right(x, out):
    out.copy_(torch.nn.functional.gelu(x))


def hang():
    threading.Event().wait()
'''
KERNEL = """

@kernel("gelu", backend="torch", variant="{name}")
def mine(x, *, out):
    right(x, out)
    {body}
"""
FORGED = (
    '{"answer": {"seconds": 0, "forks": 0, "read_outside": "", "work": 0, "programs": 0, "returned": "", '
    '"settings": [], "replaced": [], "artifacts": []}}'
)
DAMAGE = {
    # name: (a word of the reason, what the kernel does)
    "random_bytes": ("no answer", "say(os.urandom(4096))"),
    "one_byte_and_no_more": ("half a message", "say(b'\\x07'); hang()"),
    "half_a_message": ("half a message", "say(struct.pack('<Q', 1000) + b'{\"answer\":'); hang()"),
    "length_of_2_to_63": ("was announced", "say(struct.pack('<Q', 2**63))"),
    "length_too_short": ("not JSON", "say(struct.pack('<Q', 3) + b'{\"answer\": {}}')"),
    "length_of_nothing": ("not JSON", "say(struct.pack('<Q', 0))"),
    "invalid_json": ("not JSON", "say(framed('{\"answer\": '))"),
    "not_utf8": ("not JSON", 'say(framed(b\'{"answer": "\\xff\\xfe"}\'))'),
    "nested_too_deeply": ("not JSON", "say(framed('[' * 200_000))"),
    "number_too_long": ("not JSON", "say(framed('9' * 100_000))"),
    "list": ("a list", "say(framed('[1, 2]'))"),
    "number": ("a number", "say(framed('3'))"),
    "nan": ("a number", "say(framed('NaN'))"),
    "null": ("null", "say(framed('null'))"),
    "string": ("a string", "say(framed('\"pass\"'))"),
    "no_keys": ("no question", "say(framed('{}'))"),
    "forged_results": ("no question", f"say(framed(json.dumps(eval('''{FORGED}'''))))"),
    "forged_nonce": ("no question", "say(framed(json.dumps({'nonce': '0' * 32, 'answer': {}})))"),
    "forged_by_a_child": ("no question", "ctypes.CDLL(None).fork() or (say(framed('{}')), os._exit(0))"),
    "forged_and_gone": ("no question", "say(framed('{}')); os._exit(0)"),
    "flood": ("not JSON", "\n    while True: say(bytes(65536))"),
    "answer_is_a_list": ("neither an answer", "changing(lambda m: m | {'answer': [m['answer']]})"),
    "answer_without_keys": ("`seconds`", "changing(lambda m: m | {'answer': {}})"),
    "answer_with_nan": ("finite", "changing(told(seconds=float('nan')))"),
    "answer_of_wrong_types": ("`forks`", "changing(told(forks='none'))"),
    "answer_of_another_question": ("no question", "changing(lambda m: m | {'nonce': m['nonce'][::-1]})"),
    "answer_sent_twice": (
        "no answer",
        "send = ours.send; ours.send = lambda c, m: (send(c, m), send(c, m)) if 'answer' in m else send(c, m)",
    ),
    "message_after_the_answer": ("no answer", "threading.Timer(0.02, lambda: say(framed('{}'))).start()"),
    "channel_closed": ("closed", "os.close(channel())"),
    "channel_closed_for_good": ("ran on", "os.close(channel()); hang()"),
    "channel_shut_down": ("closed", "socket.socket(fileno=os.dup(channel())).shutdown(socket.SHUT_RDWR)"),
    "channel_replaced": ("closed", "os.dup2(os.open(os.devnull, os.O_RDWR), channel())"),
    "every_file_closed": ("closed", "os.closerange(3, 4096)"),
    "every_file_written_to": (
        "bytes",
        "\n    for name in os.listdir('/proc/self/fd'):\n        try: os.write(int(name), b'pass' * 100)"
        "\n        except OSError: pass",
    ),
}
ELSEWHERE = {
    # name: (detector or "" where it passes, what the kernel does)
    "arena_cut_off": ("exception", "os.ftruncate(arena(), 0)"),
    "arena_grown": ("", "os.ftruncate(arena(), 1 << 44)"),
    "question_eaten": ("timeout", "threading.Thread(target=lambda: os.read(channel(), 1 << 20)).start()"),
    "words_of_half_a_character": ("exception", "raise ValueError('\\ud800 \\x1b[2J \\x00')"),
    "words_without_end": ("exception", "raise ValueError('x' * (100 << 20))"),
    "words_that_cannot_be_printed": (
        "exception",
        "raise type('Mute', (Exception,), {'__str__': lambda self: 1 / 0, 'where': 5, 'fix': object()})()",
    ),
}
KINDS = {**{n: ("channel", *told) for n, told in DAMAGE.items()}, **{n: (d, "", b) for n, (d, b) in ELSEWHERE.items()}}


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """All of them in one run, and an honest kernel at either end."""
    folder = tmp_path_factory.mktemp("channel")
    files = []
    for name, (_, _, body) in {"first": ("", "", "pass"), **KINDS, "last": ("", "", "pass")}.items():
        files.append(folder / f"{name}.py")
        files[-1].write_text(HEAD + KERNEL.format(name=name, body=body))
    options = Options(dtypes=("fp32",), workloads=4, seconds=4, jobs=6)  # most of them only wait
    return {r.kernel.rpartition(":")[2]: r for r in run(plan(files, options), options)}


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_a_kernel_that_damages_its_channel_fails_with_a_sentence(records, name):
    detector, words, _ = KINDS[name]
    record = records[name]
    assert record.status == ("fail" if detector else "pass"), record.reason
    assert record.evidence.get("detector", "") == detector, record.reason
    assert words in record.reason and "Traceback" not in record.reason
    assert len(record.reason) < 4000
    record.reason.encode()
    assert not {"\x00", "\x1b"} & set(record.reason)
    assert record.replay.startswith("assay check ")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["first", "last"])
def test_honest_kernels_beside_them_pass(records, name):
    assert records[name].status == "pass", records[name].reason


@pytest.mark.slow
def test_every_kernel_has_one_record(records):
    assert len(records) == len(KINDS) + 2 and len(DAMAGE) >= 15


def test_an_answer_may_say_more_than_is_asked_for(tmp_path):
    file = tmp_path / "more.py"
    file.write_text(HEAD + KERNEL.format(name="more", body="changing(told(temperature=3.5))"))
    assert [r.status for r in assay.check(file, dtypes="fp32", workloads=2)] == ["pass"]
