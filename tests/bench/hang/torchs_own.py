# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""What torch's own means say of a hang: torchfrtrace on the flight records of all ranks."""

import contextlib
import http.client
import json
import os
import pathlib
import pickle
import re
import socket
import subprocess
import tempfile

QUESTIONS = {"gloo": "fr_trace_json", "nccl": "dump_nccl_trace_json",
             "nccl2": "fr_trace_json?backend=nccl2"}

READER = """
import os, sys
from torch.distributed.flight_recorder import fr_trace
for folder in sys.argv[1:]:
    if (child := os.fork()) == 0:
        out = os.open(folder + ".out", os.O_CREAT | os.O_WRONLY)
        os.dup2(out, 1), os.dup2(out, 2)
        os.environ["FR_TRACE_VERBOSE_OUTPUT"] = "0"
        fr_trace.main([folder, "-p", "rank_"])
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
"""


class Connection(http.client.HTTPConnection):
    """To a socket in an open directory, whose name may be too long for an address."""

    def __init__(self, directory, name):
        super().__init__("torch", timeout=3)
        self.place = f"/proc/self/fd/{directory}/{name}"

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.place)


def ask(directory, name, question):
    connection = Connection(directory, name)
    with contextlib.closing(connection):
        connection.request("POST", f"/handler/{question}")
        return json.loads(connection.getresponse().read())


def tap_of(node, pid):
    """The directory of its control server's socket, as this process sees it."""
    with contextlib.suppress(OSError):
        environ = pathlib.Path(f"/proc/{node.init}/root/proc/{pid}/environ").read_bytes()
        for word in environ.split(b"\0"):
            if word.startswith(b"HLAUNCH_TAP=/"):
                return f"/proc/{node.init}/root{word.decode()[len('HLAUNCH_TAP='):]}"
    return None


def records(hosts, backend):
    """The flight records of all ranks that answer, by rank."""
    found = {}
    question = QUESTIONS.get(backend, "fr_trace_json?backend=hlaunch")
    for node in hosts.nodes:
        alive = node.processes()
        for tap in {tap for pid in alive if (tap := tap_of(node, pid))}:
            with contextlib.suppress(OSError):
                directory = os.open(tap, os.O_DIRECTORY)
                for name in os.listdir(tap):
                    rank, _, pid = name.partition(".")
                    if not rank.isdigit() or not pid.isdigit() or int(pid) not in alive:
                        continue
                    with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
                        found[int(rank)] = ask(directory, name, question)
                os.close(directory)
    return found


def write(dumps, backend, name, found):
    """Writes them as torch does at a time-out, though without frames; returns the directory."""
    folder = tempfile.mkdtemp(dir=dumps, prefix=re.sub(r"\W+", "-", f"{backend}-{name}-"))
    for rank, record in found.items():
        for entry in record.setdefault("entries", []):
            entry["frames"] = []
        pathlib.Path(folder, f"rank_{rank}").write_bytes(pickle.dumps(record))
    return folder


def judge(hangs, python):
    """Sets of each hang whether torchfrtrace names exactly the ranks that hold up the others, and
    what it says."""
    folders = [row["dump"] for row in hangs if row["dump"]]
    if folders:
        subprocess.run([python, "-c", READER, *folders], check=False)
    for row in hangs:
        row["torchs"] = None
        output = pathlib.Path(f"{row['dump']}.out")
        if not row["dump"] or not output.exists():
            continue
        row["torchs_text"] = output.read_text(encoding="utf-8", errors="replace")
        row["torchs"] = named(row["torchs_text"]) == set(row["culprits"])


def named(text):
    """The ranks that the first finding says are missing, or differ: what follows is about later
    calls, which have other numbers on other ranks."""
    for finding in re.split(r"(?=Not all ranks joining|Collective sequence number)", text):
        missing = re.search(r"missing ranks: {([\d, ]+)}", finding)
        culprits = re.findall(r"Culprit rank (\d+)", finding)
        absent = re.search(r"[Mm]issing dump files? for ranks? \D*([\d, ]+)", finding)
        found = culprits or re.findall(r"\d+", (missing or absent or ["", ""])[1])
        if found:
            return {int(rank) for rank in found}
    return set()
