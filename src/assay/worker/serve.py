"""Inside a worker: answer the parent's questions until it goes away."""

from __future__ import annotations

import os
import socket

from assay.worker import channel
from assay.worker.activity import watch
from assay.worker.execute import build, compiled, reference, trial
from assay.worker.failure import describe
from assay.worker.measure import again, timed

_ANSWERS = {
    "trial": trial,
    "build": build,
    "compile": compiled,
    "reference": reference,
    "timed": timed,
    "again": again,
    "watch": watch,
}


def serve(connection: socket.socket, arena: channel.Arena) -> None:
    # A forked child must neither answer in this process's name nor keep the channel open.
    os.register_at_fork(after_in_child=connection.close)
    while (message := channel.receive(connection)) is not None:
        try:
            answer = _ANSWERS[message["do"]](message, arena)
        except BaseException as error:  # sys.exit and KeyboardInterrupt are answers too
            answer = {"error": describe(error)}
        channel.send(connection, answer)
