# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""`planted_failures.py NAME RANK`: the rank fails in the way of that name.

The others block like workers in a collective: connected to that rank, in a system call. When it
is gone they fail, too, with what the system tells them; nobody fails out of his own.
"""

import ctypes
import importlib
import json
import mmap
import os
import pathlib
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback

RANK = int(os.environ["RANK"])
HOST = sys.argv[3] if len(sys.argv) > 3 else socket.gethostname()  # Of the rank that fails.
WORLD = int(os.environ["WORLD_SIZE"])
# Seconds after which a silent peer is given up, as a runtime with signs of life of its own does.
PATIENCE = float(os.environ["PLANT_PATIENCE"]) if "PLANT_PATIENCE" in os.environ else None
HERE = pathlib.Path(os.environ.get("PLANT_FOLDER", "."))


class Peers:
    """Connections of all ranks to the one that is to fail; its address is in a file."""

    def __init__(self, rank):
        place = HERE / f"peers-{os.environ['TORCHELASTIC_RUN_ID']}-" \
                       f"{os.environ['TORCHELASTIC_RESTART_COUNT']}"
        self.open = []
        if RANK == rank:
            with socket.create_server(("", 0), backlog=WORLD, family=socket.AF_INET) as server:
                port = server.getsockname()[1]
                place.with_suffix(".new").write_text(f"{os.environ.get('PLANT_ADDRESS', '127.0.0.1')}"
                                                     f" {port}", encoding="ascii")
                place.with_suffix(".new").rename(place)
                self.open = [server.accept()[0] for _ in range(WORLD - 1)]
        else:
            while not place.exists():
                time.sleep(0.01)
            host, port = place.read_text(encoding="ascii").split()
            self.open = [socket.create_connection((host, int(port)))]

    def wait(self):
        """What a worker does whose peer is at work: it waits until the connection breaks."""
        self.open[0].sendall(b"x" * 16)
        self.open[0].settimeout(PATIENCE)
        try:
            answer = self.open[0].recv(1)
        except TimeoutError:
            answer = b""
        except ConnectionResetError:
            if sys.argv[1] != "left_the_group":
                raise
            answer = b""
        if not answer and sys.argv[1] == "left_the_group":
            raise RuntimeError(f"rank {sys.argv[2]} on {HOST} left the group before "
                               "all_reduce #100")
        if not answer:
            raise ConnectionResetError("Connection closed by peer")

    def close(self):
        """As a runtime does on its way out; unread bytes make it a reset."""
        for connection in self.open:
            connection.close()


def value_error(_):
    batch = {"labels": []}
    raise ValueError(f"bad batch: {batch}")


def chained(_):
    try:
        {}["loss"]
    except KeyError as error:
        raise RuntimeError("no loss in the output") from error


def assertion(_):
    assert RANK < 0, "loss is not finite"


def exit_85(_):
    sys.exit(85)


def exit_silently(_):
    sys.exit(1)


def exit_with_a_word(_):
    sys.exit("the configuration names no data set")


def exit_0(_):
    sys.exit(0)


def left_the_group(peers):
    """Its peers know what it did: they say so in the words of hlaunch's collectives."""
    peers.close()
    signal.pause()


def long_message(_):
    """In the error file, as torch's @record writes it."""
    message = "ValueError: bad batch: " + "7, " * 1_000_000
    pathlib.Path(os.environ["TORCHELASTIC_ERROR_FILE"]).write_text(
        json.dumps({"message": {"message": message, "extraInfo": {"py_callstack": message}}}),
        encoding="ascii")
    sys.exit(1)


def two_lines(_):
    raise RuntimeError("Error(s) in loading state_dict for Linear:\n\tsize mismatch for weight")


def raised_by_a_loader(_):
    """As torch re-raises what a data loader raised."""
    original = traceback_of(value_error)
    raise ValueError("Caught ValueError in DataLoader worker process 0.\nOriginal " + original)


def traceback_of(function):
    try:
        function(None)
    except ValueError:
        return traceback.format_exc()


def exit_without_cleanup(_):
    os._exit(3)


def stands(_):
    """Waits for its end."""
    print("stands", flush=True)
    signal.pause()


def peers_first(peers):
    """The victims are dead before the culprit is."""
    peers.close()
    time.sleep(0.4)
    raise ValueError("bad batch, found late")


def in_a_thread(_):
    def load():
        raise ValueError("bad sample in the loader's thread")
    thread = threading.Thread(target=load)
    thread.start()
    thread.join()
    sys.exit(1)


def in_a_subprocess(_):
    subprocess.run([sys.executable, "-c", "raise ValueError('bad shard')"], check=True)


def segmentation_fault(_):
    ctypes.string_at(8)


def abort(_):
    os.write(2, b"free(): invalid pointer\n")
    os.abort()


def bus_error(_):
    path = HERE / f"mapped-{os.getpid()}"
    with path.open("w+b") as file:
        file.truncate(4096)
        mapped = mmap.mmap(file.fileno(), 4096)
        file.truncate(0)
        path.unlink()
        mapped[0] = 1


def illegal_instruction(_):
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write({"x86_64": b"\x0f\x0b"}.get(os.uname().machine, b"\0\0\0\0"))
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    ctypes.CFUNCTYPE(None)(address)()


def killed(_):
    os.kill(os.getpid(), signal.SIGKILL)


def terminated(_):
    os.kill(os.getpid(), signal.SIGTERM)


def port_in_use(_):
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_server(server.getsockname())


def master_port_in_use(_):
    address = ("127.0.0.1", int(os.environ["MASTER_PORT"]))
    try:
        socket.create_server(address)
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}: {address[0]}:{address[1]}") from None


def unknown_host(_):
    socket.create_connection(("no-such-host.invalid", 80))


def unreachable(_):
    socket.create_connection(("203.0.113.7", 80), timeout=20)


def refused(_):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
    socket.create_connection(address)


def import_error(_):
    importlib.import_module("transformers_of_another_release")


def too_many_files(_):
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    kept = []
    while True:
        kept.append(open("/dev/null", encoding="ascii"))


def disk_full(_):
    with open("/dev/full", "wb", buffering=0) as file:
        file.write(b"checkpoint")


def permission(_):
    program = HERE / "no_program"
    program.write_text("#!/bin/sh\n", encoding="ascii")
    subprocess.run([program], check=True)


def out_of_address_space(_):
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    bytearray(1 << 31)


def out_of_memory(_):
    """More than the cgroup allows in which the test has put all of the job."""
    pathlib.Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    kept = bytearray(1 << 29)
    for page in range(0, len(kept), 4096):
        kept[page] = 1


def syntax_error(_):
    path = HERE / f"broken_{os.getpid()}.py"
    path.write_text("def train(:\n    pass\n", encoding="ascii")
    sys.path.insert(0, str(HERE))
    importlib.import_module(path.stem)


def missing_file(_):
    pathlib.Path("data.bin").read_bytes()


def recursion(_):
    def step(n):
        return step(n + 1)
    step(0)


def main():
    name, rank = sys.argv[1], int(sys.argv[2])
    plant = globals()[name]
    if WORLD == 1:
        plant(None)
    elif rank < 0:  # Every rank.
        plant(None)
    else:
        peers = Peers(rank)
        if RANK == rank:
            plant(peers)
        peers.wait()


if __name__ == "__main__":
    main()
