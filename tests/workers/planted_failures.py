# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""`planted_failures.py NAME RANK`: the rank fails in the way of NAME.

The others block like workers in a collective: connected to that rank, in a system call. Once that
rank is gone they fail too, with the system's error; none of them fails by itself. The file "struck"
in PLANT_FOLDER contains the time, the host and the rank of the failure.
"""

import argparse
import atexit
import concurrent.futures
import ctypes
import fcntl
import importlib
import json
import logging
import mmap
import os
import pathlib
import pickle
import resource
import select
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import traceback
import warnings

RANK = int(os.environ["RANK"])
HOST = sys.argv[3] if len(sys.argv) > 3 else socket.gethostname()  # Of the failing rank.
WORLD = int(os.environ["WORLD_SIZE"])
# Seconds after which a silent peer is given up, as by a runtime that has its own signs of life.
PATIENCE = float(os.environ["PLANT_PATIENCE"]) if "PLANT_PATIENCE" in os.environ else None
# A file before which no peer is given up.
PATIENT_UNTIL = os.environ.get("PLANT_PATIENT_UNTIL")
HERE = pathlib.Path(os.environ.get("PLANT_FOLDER", "."))


class Peers:
    """Connections of all ranks to the one that will fail, whose address is in a file."""

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
            # Locked until this process is gone.
            fcntl.flock(os.open(HERE / f"lives-{RANK}", os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX)
            host, port = place.read_text(encoding="ascii").split()
            self.open = [socket.create_connection((host, int(port)))]

    def wait(self):
        """Waits until the connection breaks, as a worker does whose peer is at work."""
        self.open[0].sendall(b"x" * 16)
        while PATIENT_UNTIL and not os.path.exists(PATIENT_UNTIL):
            if select.select(self.open, [], [], 0.05)[0]:
                break
        lingers = sys.argv[1] == "others_linger"
        self.open[0].settimeout(1 if lingers else PATIENCE)
        try:
            answer = self.open[0].recv(1)
        except TimeoutError:
            if lingers:
                give_up()
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
        """Closes connections as a runtime does on its way out; unread bytes make that a reset."""
        for connection in self.open:
            connection.close()


def give_up():
    """Fails as users of gloo do, and slowly as those of NCCL do: only rank 0 exits at once.

    It fails last, when the others have said that they waited in vain and hlaunch has read that.
    """
    if RANK > 0:
        atexit.register(linger)
    else:
        others = [rank for rank in range(1, WORLD) if rank != int(sys.argv[2])]
        while not all((HERE / f"gave-up-{rank}").exists() for rank in others):
            time.sleep(0.01)
        time.sleep(1)
    raise RuntimeError("Timed out waiting 1000ms for recv operation to complete")


def linger():
    """Takes long to exit, after Python has written the exception."""
    (HERE / f"gave-up-{RANK}").touch()
    time.sleep(60)


def mark():
    """Records that the failure is about to happen."""
    text = f"{time.time()} {socket.gethostname()} {RANK}"
    (HERE / f"struck-{RANK}").write_text(text, encoding="ascii")
    (HERE / f"struck-{RANK}").rename(HERE / "struck")


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
    """Its peers know what it did and report it in the words of hlaunch's collectives."""
    peers.close()
    signal.pause()


def long_message(_):
    """Writes the message into the error file, as torch's @record does."""
    message = "ValueError: bad batch: " + "7, " * 1_000_000
    pathlib.Path(os.environ["TORCHELASTIC_ERROR_FILE"]).write_text(
        json.dumps({"message": {"message": message, "extraInfo": {"py_callstack": message}}}),
        encoding="ascii")
    sys.exit(1)


def two_lines(_):
    raise RuntimeError("Error(s) in loading state_dict for Linear:\n\tsize mismatch for weight")


def raised_by_a_loader(_):
    """Raises as torch does for an exception of a data loader."""
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
    """A victim dies before the culprit, which follows at once: hlaunch waits 0.9 s for it."""
    locks = [os.open(HERE / f"lives-{rank}", os.O_RDWR) for rank in range(WORLD) if rank != RANK]
    peers.close()
    while not any(is_free(lock) for lock in locks):
        time.sleep(0.001)
    raise ValueError("bad batch, found late")


def is_free(lock):
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


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
    """Uses more memory than the cgroup allows in which the test has put the job."""
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


def own_exception(_):
    """An exception whose name does not end like those of Python."""
    class LossIsNan(Exception):
        pass
    raise LossIsNan("at step 3")


def without_a_word(_):
    raise RuntimeError


def several_lines(_):
    raise ValueError("the configuration is wrong:\n  lr: not a number\n  epochs: below 0")


def other_letters(_):
    raise ValueError("Größe 0: データがありません")


def key_error(_):
    {"a": 1}["labels"]


def group_of_exceptions(_):
    raise ExceptionGroup("shards", [ValueError("bad shard 1"), OSError("bad shard 2")])


def keyboard_interrupt(_):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)


def unicode_error(_):
    b"\xff\xfe".decode("utf-8")


def bad_json(_):
    json.loads("{lr: 1}")


def division(_):
    print(1 / 0)


def logged(_):
    """A program that catches everything, logs it and exits."""
    try:
        value_error(None)
    except ValueError:
        logging.exception("training failed")
        sys.exit(1)


def much_after_it(_):
    """Other threads write much before the process ends."""
    try:
        value_error(None)
    except ValueError:
        traceback.print_exc()
        for step in range(300):
            print(f"I0101 worker.cc:{step}] closing shard {step}", file=sys.stderr)
        sys.exit(1)


def coloured(_):
    """A coloured traceback, as some libraries print it."""
    sys.stderr.write("\x1b[31mTraceback\x1b[0m (most recent call last):\n"
                     "  File \"train.py\", line 3, in <module>\n"
                     "\x1b[1;31mValueError\x1b[0m: bad batch\n")
    sys.exit(1)


def usage(_):
    parser = argparse.ArgumentParser("train.py")
    parser.add_argument("--data", required=True)
    parser.parse_args([])


def by_a_shell(_):
    os.execvp("sh", ["sh", "-c", "echo 'prepare: no data' >&2; exit 7"])


def unknown_command(_):
    os.execvp("sh", ["sh", "-c", "no-such-command"])


def rust_panic(_):
    os.write(2, b"\nthread 'main' panicked at 'index out of bounds', src/tokens.rs:7:5\nnote: run "
                b"with `RUST_BACKTRACE=1` environment variable to display a backtrace\n")
    os._exit(101)


def cpp_terminate(_):
    os.write(2, b"terminate called after throwing an instance of 'std::out_of_range'\n"
                b"  what():  vector::_M_range_check\n")
    os.abort()


def gpu_index_out_of_range(_):
    """What torch writes of an assertion in a CUDA kernel, where it uses NCCL."""
    told = ("Search for `cudaErrorAssert' in https://docs.nvidia.com/cuda/ for more information.\n"
            "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n")
    stack = "Exception raised from query at /pytorch/c10/cuda/CUDAEvent.h:111 (recent call first):\n"
    stack += "".join(f"frame #{i}: <unknown function> + 0xc114 (0x7fcede973114 in libc10.so)\n"
                     for i in range(12)) + "\n"
    error = "CUDA error: device-side assert triggered"
    os.write(2, b"/pytorch/aten/src/ATen/native/cuda/IndexKernel.cu:111: operator(): block: [0,0,0], "
                b"thread: [1,0,0] Assertion `index < size && \"index out of bounds\"` failed.\n")
    try:
        raise RuntimeError(error)
    except RuntimeError:
        traceback.print_exc()
    os.write(2, f"{told}terminate called after throwing an instance of 'c10::DistBackendError'\n"
                f"  what():  [PG ID 0 PG GUID 0(default_pg) Rank 1] Process group watchdog thread "
                f"terminated with exception: {error}\n{told}\n{stack}{stack}".encode())
    os.abort()


def child_killed(_):
    subprocess.run([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"], check=True)


def pool_broken(_):
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        pool.submit(os._exit, 1).result()


def stack_overflow(_):
    """Overflows the stack in C."""
    function = ctypes.CFUNCTYPE(None)
    deeper = []
    deeper.append(function(lambda: deeper[0]()))
    sys.setrecursionlimit(1 << 30)
    resource.setrlimit(resource.RLIMIT_STACK, (1 << 18, resource.RLIM_INFINITY))
    threading.stack_size(1 << 18)
    thread = threading.Thread(target=deeper[0])
    thread.start()
    thread.join()


def division_in_c(_):
    os.kill(os.getpid(), signal.SIGFPE)


def trap(_):
    os.kill(os.getpid(), signal.SIGTRAP)


def cpu_limit(_):
    resource.setrlimit(resource.RLIMIT_CPU, (0, resource.RLIM_INFINITY))
    while True:
        pass


def file_limit(_):
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    (HERE / "checkpoint").write_bytes(bytes(1 << 20))


def is_a_directory(_):
    open("/tmp", "rb")


def certificate(_):
    raise ssl.SSLCertVerificationError("certificate verify failed: unable to get local issuer")


def pickle_error(_):
    pickle.dumps(lambda: None)


def own_time_out(_):
    """Raises a time-out that is not about other workers."""
    raise TimeoutError("the storage of the data set did not answer within 30 s")


def with_a_warning(_):
    try:
        value_error(None)
    finally:
        warnings.warn("a tensor was not freed", stacklevel=1)


def others_linger(_):
    time.sleep(600)


def says(_):
    """`planted_failures.py says RANK HOST TEXT`: fails with TEXT."""
    raise RuntimeError(sys.argv[4])


def main():
    name, rank = sys.argv[1], int(sys.argv[2])
    plant = globals()[name]
    if WORLD == 1 or rank < 0:  # Every rank fails.
        mark()
        plant(None)
    else:
        peers = Peers(rank)
        if RANK == rank:
            if name != "stands":
                mark()
            plant(peers)
        peers.wait()


if __name__ == "__main__":
    main()
