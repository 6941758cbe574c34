# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The failures that blame.py plants: the programs, the strike, and what a right report says.

The report has to name a plant's rank and host. Most plants come from the end-to-end test.
"""

import dataclasses
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import typing

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/end_to_end"))

import jobs  # noqa: E402
import lab  # noqa: E402
import planted_failures_test as planted  # noqa: E402

SOON = 1.0  # Seconds, where the kernel reports the failure.
TORCH_ENDS = 2.0  # Seconds, where a worker takes its time to end after its exception.
START = 3.0  # Seconds from the launch, where no worker starts.
LOSS_LIMIT = 6
SILENCE = LOSS_LIMIT + 8  # The limit, the lease and a second; all waits for silence end in that.
WAITS = 3 + 5  # A time-out of the workers, and the time in which all of them report it.
COMM_RANK = str(pathlib.Path(lab.BIN).parent / "tests/workers/hlaunch_test_comm_rank")


@dataclasses.dataclass
class Plant:
    group: str
    name: str
    words: tuple  # The program and its arguments.
    cause: str  # A pattern in the first line of the report.
    rank: int = None  # The rank to be named; None if any or none will do.
    host: int = 0  # None: any one may be named.
    advice: str = ""  # A pattern in the advice; empty if there may be none.
    hosts: int = 1
    nproc: int = 4
    python: str = jobs.PYTHON
    options: tuple = ()  # Options of hlaunch.
    env: dict = dataclasses.field(default_factory=dict)
    only: dict = dataclasses.field(default_factory=dict)  # Node: {"words", "options", "env"} there.
    prepare: typing.Callable = None  # (nodes), before the job.
    strike: typing.Callable = None  # (nodes, runs), once a worker of the host has printed "stands".
    within: float = SOON
    console: int = 0  # The node whose report counts, since a user can read it.
    torchrun: bool = True  # Whether torchrun can run this.


def of_test(group, plant, hosts=1, nproc=4, **more):
    """A plant of the end-to-end test."""
    target = plant.planted if plant.planted is not None else \
        1 if plant.rank is None else plant.rank
    more.setdefault("cause", plant.cause)
    more.setdefault("advice", plant.advice)
    more.setdefault("rank", None if plant.planted == -1 else target)
    return Plant(group, plant.name + (" @record" if plant.record else ""),
                 (planted.PROGRAM, plant.name, str(target), f"node{max(target, 0) // nproc}",
                  *(["--record"] if plant.record else [])),
                 host=max(target, 0) // nproc, hosts=hosts, nproc=nproc, **more)


def worker(name, cause, advice="", rank=1, text=(), hosts=1, nproc=4, **more):
    """A worker that fails by itself, in a way of planted_failures.py."""
    return Plant("a worker", text[0][:40] if text else name,
                 (planted.PROGRAM, name, str(rank), f"node{rank // nproc}", *text), cause, rank,
                 rank // nproc, advice, hosts, nproc, **more)


FURTHER = [
    worker("own_exception", r"LossIsNan: at step 3"),
    worker("without_a_word", r"exited with code 1: RuntimeError$"),
    worker("several_lines", r"ValueError: the configuration is wrong"),
    worker("other_letters", r"ValueError: Größe 0: データがありません"),
    worker("key_error", r"KeyError: 'labels'"),
    worker("group_of_exceptions", r"ExceptionGroup: shards \(2 sub-exceptions\)"),
    worker("keyboard_interrupt", r"SIGINT|KeyboardInterrupt"),
    worker("unicode_error", r"UnicodeDecodeError: 'utf-8' codec"),
    worker("bad_json", r"JSONDecodeError: Expecting property name"),
    worker("division", r"ZeroDivisionError", rank=3),
    worker("logged", r"ValueError: bad batch"),
    worker("much_after_it", r"ValueError: bad batch"),
    worker("coloured", r"ValueError: bad batch"),
    worker("usage", r"required: --data"),
    worker("by_a_shell", r"exited with code 7"),
    worker("unknown_command", r"no-such-command: not found"),
    worker("rust_panic", r"index out of bounds"),
    worker("cpp_terminate", r"out_of_range.*_M_range_check"),
    worker("child_killed", r"died with <Signals.SIGKILL: 9>"),
    worker("pool_broken", r"BrokenProcessPool"),
    worker("stack_overflow", r"SIGSEGV", "FAULTHANDLER"),
    worker("division_in_c", r"SIGFPE", "FAULTHANDLER"),
    worker("trap", r"SIGTRAP"),
    worker("cpu_limit", r"SIGXCPU", "ulimit -t"),
    worker("file_limit", r"OSError: \[Errno 27\] File too large", "ulimit -f"),
    worker("is_a_directory", r"IsADirectoryError: .*'/tmp'"),
    worker("certificate", r"SSLCertVerificationError: .*certificate verify failed"),
    worker("pickle_error", r"PicklingError|AttributeError: Can't pickle"),
    worker("own_time_out", r"TimeoutError: the storage of the data set"),
    worker("with_a_warning", r"ValueError: bad batch"),
    # Messages in the words of the libraries that print them.
    worker("says", r"CUDA out of memory", "smaller batch",
           text=("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 79 GiB in all",)),
    worker("says", r"invalid device ordinal", "fewer GPUs than workers",
           text=("CUDA error: invalid device ordinal",)),
    worker("says", r"device-side assert", "CUDA_LAUNCH_BLOCKING",
           text=("CUDA error: device-side assert triggered",)),
    worker("says", r"unhandled system error", "NCCL_DEBUG",
           text=("NCCL error in: ProcessGroupNCCL.cpp:1269, unhandled system error",)),
    worker("says", r"Read-only file system", "cannot be written",
           text=("[Errno 30] Read-only file system: '/data/checkpoint'",)),
    worker("says", r"Stale file handle", text=("[Errno 116] Stale file handle: '/data/train'",)),
    worker("says", r"Disk quota exceeded", "df -h", text=("[Errno 122] Disk quota exceeded",)),
    worker("says", r"out of shared memory", "/dev/shm",
           text=("unable to allocate 1 GiB: worker out of shared memory",)),
]

TEST_PLANTS = [of_test("a worker", plant) for plant in planted.PLANTS if not plant.options]
TWO_HOSTS = [of_test("a worker of two hosts", plant, 2, 2) for plant in planted.PLANTS_ON_TWO_NODES]
TWO_HOSTS += [dataclasses.replace(worker(name, cause, advice, rank, hosts=2, nproc=2),
                                  group="a worker of two hosts")
              for name, cause, advice, rank in [
                  ("abort", r"SIGABRT", "ended itself", 2),
                  ("killed", r"SIGKILL\): sent from outside", "who ends processes on node1", 3),
                  ("disk_full", r"No space left on device", "node1", 3),
                  ("permission", r"PermissionError", "owner and mode", 2),
                  ("import_error", r"ModuleNotFoundError", "on node1: install", 2),
                  ("exit_with_a_word", r"the configuration names", "", 3),
                  ("in_a_thread", r"ValueError: bad sample", "", 3),
                  ("long_message", r"ValueError: bad batch: 7, 7, ", "", 3),
                  ("several_lines", r"ValueError: the configuration is wrong", "", 2),
                  ("own_exception", r"LossIsNan: at step 3", "", 1),
                  ("too_many_files", r"Too many open files", "node1", 3),
                  ("recursion", r"RecursionError", "without end", 0)]]
THREE_HOSTS = [dataclasses.replace(worker(name, cause, advice, rank, hosts=3, nproc=2),
                                   group="a worker of three hosts")
               for name, cause, advice, rank in [
                   ("value_error", r"ValueError: bad batch", "", 5),
                   ("peers_first", r"ValueError: bad batch, found late", "", 4),
                   ("segmentation_fault", r"SIGSEGV", "FAULTHANDLER", 3),
                   ("killed", r"SIGKILL\): sent from outside", "node2", 5),
                   ("exit_silently", r"exited with code 1", "", 2),
                   ("exit_0", r"exited with code 0 before the others were done",
                    "data of unequal length", 5),
                   ("left_the_group", r"left the group before all_reduce #100", "", 4),
                   ("missing_file", r"FileNotFoundError: .*data\.bin", "node2", 5)]]


# Nodes that die.
def kill_all(nodes, runs):
    planted.kill_everything(nodes[-1], runs[-1])


def freeze(nodes, runs):
    for pid in [*runs[-1].descendants(), runs[-1].pid]:
        os.kill(pid, signal.SIGSTOP)


def kill_hlaunch(nodes, runs):
    """Kills agent and keeper together."""
    keeper = runs[-1].pid
    agent = lab.children(keeper)
    for pid in (*agent, keeper):
        os.kill(pid, signal.SIGKILL)


def kill_agent(nodes, runs):
    os.kill(lab.children(runs[-1].pid)[0], signal.SIGKILL)


def power_off(nodes, runs):
    nodes[-1].power_off()


def cut(nodes, runs):
    nodes[-1].cut()


def drop(nodes, runs):
    nodes[-1].drop()


def in_network(node, *command):
    subprocess.run(["nsenter", "-t", str(node.init), "-n", "--", *command], check=True, timeout=60)


def reject(nodes, runs):
    """Switches on a firewall while the job runs."""
    for chain in ("INPUT", "OUTPUT"):
        in_network(nodes[-1], "iptables", "-I", chain, "-i" if chain == "INPUT" else "-o", "eth0",
                   "-p", "tcp", "-j", "REJECT", "--reject-with", "tcp-reset")


def node_dies(name, strike, within, hosts, torch=None, patience=None, cause=None, **more):
    last = hosts - 1
    words = (planted.TORCH_PROGRAM, "works", str(2 * last)) if torch else \
        (planted.PROGRAM, "stands", str(2 * last + 1), f"node{last}")
    return Plant("a node dies", f"{name}, {hosts} hosts" + (", torch" if torch else ""), words,
                 cause or rf"node{last} .*(was lost|died|was killed|cut off)|hlaunch .*node{last}",
                 host=last, advice="look at that host", hosts=hosts, nproc=2, python=torch or jobs.PYTHON,
                 options=("--loss-limit", str(LOSS_LIMIT)),
                 env={"PLANT_PATIENCE": patience} if patience else {}, strike=strike, within=within,
                 **more)


NODES = [node_dies(*row, hosts, patience=patience) for hosts in (2, 3) for *row, patience in [
    ("all its processes are killed", kill_all, SOON, None),
    ("hlaunch is killed on it", kill_hlaunch, SOON, None),
    ("power off", power_off, SILENCE, None),
    ("power off, impatient", power_off, SILENCE, 1),
    ("frozen", freeze, SILENCE, None),
    ("cable pulled", cut, SILENCE, None),
    ("cable pulled, impatient", cut, SILENCE, 1),
    ("silent drop", drop, SILENCE, None),
    ("silent drop, impatient", drop, SILENCE, 1),
    ("firewall rejects", reject, SILENCE, None)]]
NODES += [node_dies("its agent is killed", kill_agent, SOON, 2),
          *(node_dies(*row, 2, torch=planted.TORCH2) for row in [
              ("all its processes are killed", kill_all, SOON),
              ("power off", power_off, SILENCE),
              ("frozen", freeze, SILENCE),
              ("cable pulled", cut, SILENCE)])]


# Networks that are bad from the start.
def allow_no_new_ports(nodes):
    in_network(nodes[-1], "iptables", "-A", "INPUT", "-i", "eth0", "-p", "tcp", "--syn", "--dport",
               "30000:65535", "-j", "DROP")
    in_network(nodes[0], "iptables", "-A", "INPUT", "-i", "eth0", "-p", "tcp", "--syn", "--dport",
               "30000:65535", "-j", "DROP")


def reject_new_ports(nodes):
    for node in nodes:
        in_network(node, "iptables", "-A", "INPUT", "-i", "eth0", "-p", "tcp", "--syn", "--dport",
                   "30000:65535", "-j", "REJECT")


def make_hole(nodes):
    """Large frames vanish, as in a tunnel with a smaller MTU that also swallows ICMP."""
    for node in nodes:
        in_network(node, "iptables", "-A", "INPUT", "-i", "eth0", "-m", "length", "--length",
                   "1300:65535", "-j", "DROP")


def reject_endpoint(nodes):
    in_network(nodes[0], "iptables", "-A", "INPUT", "-i", "eth0", "-p", "tcp", "--dport", "29400",
               "-j", "REJECT")


def network(name, prepare, cause, advice="", words=None, **more):
    return Plant("a network", name, words or (planted.TORCH_PROGRAM, "works", "2"), cause, host=1,
                 hosts=2, nproc=2, python=planted.TORCH2, prepare=prepare, within=60,
                 advice=advice, **more)


NETWORKS = [
    network("new ports dropped", allow_no_new_ports, r"firewall", torchrun=True),
    network("new ports rejected", reject_new_ports, r"firewall"),
    network("MTU hole", make_hole, r"MTU", "ping -M do",
            words=(planted.TORCH_PROGRAM, "works_impatiently", "2")),
    network("endpoint rejected", reject_endpoint, r"firewall rejects the port", console=1,
            options=("--join-timeout", "6")),
]


# Nodes on which nothing starts.
def write(path, text, mode=0o755):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)


def scripts(nodes):
    """Writes programs that cannot be run into the folder of every node."""
    for node in nodes:
        here = node.folder
        write(here / "no_run_bit.sh", "#!/bin/sh\nexit 0\n", 0o644)
        write(here / "carriage", "#!/usr/bin/env python3\r\nprint(1)\r\n")
        write(here / "carriage_sh", "#!/bin/sh\r\necho 1\r\n")
        write(here / "no_interpreter", "#!/opt/python9/bin/python9\nprint(1)\n")
        write(here / "no_program", "print(1)\n")
        write(here / "empty", "")
        other = 183 if os.uname().machine == "x86_64" else 62
        write(here / "other_machine", b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\0"
              + bytes([other, 0]) + b"\x01\0\0\0" + bytes(40))
        write(here / "broken.py", "def train(:\n    pass\n", 0o644)
        write(here / "importer.py", "import transformers_of_another_release\n", 0o644)
        write(here / "library.py", "import ctypes\nctypes.CDLL('libno_such_thing.so.3')\n", 0o644)
        write(here / "bad_extension.py", "import extension\n", 0o644)
        write(here / "extension.so", b"\x7fELF not at all", 0o644)
        write(here / "venv/bin/python", "#!/opt/python9/bin/python9\n")
        write(here / "old/bin/python3", "#!/bin/sh\necho 'python3: error while loading shared "
              "libraries: libpython3.9.so.1.0: cannot open shared object file: No such file or "
              "directory' >&2\nexit 127\n")
        if not (here / "lib").exists():
            need_library(here)


def need_library(here):
    """Makes a program whose library is gone."""
    (here / "lib").mkdir()
    write(here / "f.c", "int f(void) { return 0; }\n", 0o644)
    write(here / "m.c", "int f(void); int main(void) { return f(); }\n", 0o644)
    build = {"check": True, "cwd": here, "env": {"PATH": "/usr/bin:/bin"}}
    subprocess.run(["cc", "-shared", "-o", "lib/libplanted.so.1", "f.c"], **build)
    subprocess.run(["cc", "-o", "needs_library", "m.c", "lib/libplanted.so.1"], **build)
    shutil.rmtree(here / "lib")


def start(name, words, cause, advice="", hosts=(1, 2), torchrun=True, bare=False, **more):
    """Yields a plant on one host, and one on the second of two hosts; the first is healthy."""
    options = ("--no-python",) if bare else ()
    for count in hosts:
        if count == 1:
            yield Plant("a start", name, words, cause, advice=advice, nproc=2, python=None,
                        prepare=scripts, options=options, within=START, torchrun=torchrun, **more)
        else:
            well = (planted.PROGRAM, "stands", "3")
            yield Plant("a start", f"{name}, on the second host", well, cause, host=1, hosts=2,
                        advice=advice, nproc=2, prepare=scripts, within=START, torchrun=False,
                        only={1: {"words": words, "options": options, **more}})


STARTS = [plant for plants in [
    start("missing script", ("missing.py",), r"missing\.py"),
    start("missing module", ("-m", "no_such_module"), r"No module named no_such_module", "install it there"),
    start("no run bit", ("./no_run_bit.sh",), r"no_run_bit\.sh is not executable", bare=True),
    start("a folder", ("/tmp",), r"/tmp", bare=True),
    start("CR in the first line", ("./carriage",), r"ends in CR LF", "sed -i", bare=True),
    start("CR in the first line of a shell script", ("./carriage_sh",), r"CR LF", bare=True,
          hosts=(1,)),
    start("missing interpreter", ("./no_interpreter",), r"/opt/python9/bin/python9", bare=True),
    start("no program", ("./no_program",), r"no_program: it is not a program", bare=True,
          hosts=(1,)),
    start("another machine's program", ("./other_machine",), r"another machine", bare=True,
          hosts=(1,)),
    start("missing library", ("./needs_library",), r"libplanted\.so\.1", "install|LD_LIBRARY_PATH",
          bare=True),
    start("unknown program", ("no-such-program",), r"no-such-program", bare=True, hosts=(1,)),
    start("missing Python", (planted.PROGRAM, "value_error", "0"), r"/opt/no/python",
          env={"PYTHON_EXEC": "/opt/no/python"}),
    start("PYTHONHOME", (planted.PROGRAM, "value_error", "0"), r"PYTHONHOME", "PYTHONHOME",
          env={"PYTHONHOME": "/opt/python9", "PYTHON_EXEC": jobs.PYTHON}, torchrun=False),
    start("Python without its library", (planted.PROGRAM, "value_error", "0"),
          r"libpython3\.9\.so\.1\.0", "install|LD_LIBRARY_PATH", hosts=(1,),
          env={"PYTHON_EXEC": "{here}/old/bin/python3"}, torchrun=False),
    start("VIRTUAL_ENV whose python does not run", (planted.PROGRAM, "value_error", "0"),
          r"VIRTUAL_ENV|venv/bin/python", hosts=(1,),
          env={"VIRTUAL_ENV": "{here}/venv", "PATH": "{here}/venv/bin:/usr/bin:/bin", "PYTHON_EXEC": None},
          torchrun=False),
    start("a syntax error", ("broken.py",), r"SyntaxError", "fix it"),
    start("a missing import", ("importer.py",), r"ModuleNotFoundError", "install it there"),
    start("a library that Python cannot load", ("library.py",), r"libno_such_thing\.so\.3",
          "install|LD_LIBRARY_PATH"),
    start("a broken extension", ("bad_extension.py",), r"ImportError: .*(file too short|invalid ELF)",
          "damaged", hosts=(1,)),
    start("unknown option", ("--no-such-option", planted.PROGRAM), r"no-such-option"),
] for plant in plants]


def torch(name, cause, advice="", rank=1, python=planted.TORCH2, host=0, **more):
    target = more.pop("target", -1 if rank is None else rank)
    release = "1.13" if python == planted.TORCH1 else "2"
    words = (planted.TORCH_PROGRAM, name, str(target), *more.pop("further", ()))
    return Plant(f"torch {release}", " ".join((name, *words[3:])), words, cause, rank, host, advice,
                 **{"nproc": 3, "python": python, "within": TORCH_ENDS, **more})


def of_torch(python):
    rows = [
        ("raises", r"ValueError: bad batch", "", {"rank": 2}),
        ("exits_85", r"exited with code 85", "", {"rank": 2}),
        ("is_killed", r"SIGKILL", "who ends processes", {"rank": 0}),
        ("has_a_segmentation_fault", r"SIGSEGV", "FAULTHANDLER", {}),
        ("aborts", r"SIGABRT", "ended itself", {}),
        ("leaves_early", r"exited with code 0 before the others were done",
         "data of unequal length", {}),
        ("sleeps", r"rank 1 \(node0\)", r"rank 1 on node0", {"within": WAITS}),
        ("loader_raises", r"ValueError: bad sample", "", {}),
        ("loader_killed", r"DataLoader worker .*(killed|exited)", "loader", {}),
        ("wrong_shape", r"mat1 and mat2 shapes cannot be multiplied", "", {"rank": 0}),
        ("other_state", r"loading state_dict for Linear", "", {}),
        ("much_to_say", r"ValueError: bad batch: 7, 7", "", {}),
        ("index_out_of_range", r"IndexError: index out of range", "", {}),
        ("calls_another_collective", r"different collectives",
         "", {"within": WAITS}),
        ("misses_a_barrier", r"rank 1 \(node0\) (failed to pass|did not come)", r"rank 1 on node0",
         {"within": WAITS}),
        ("waits_for_a_key", r"never", "never", {"within": WAITS}),
        ("asks_for_cuda", r"CUDA|NVIDIA", "CPU|CUDA|GPU", {}),
        ("does_not_join", r"rank 1 \(node0\)", "rank 1 on node0", {"within": WAITS}),
    ]
    for name, cause, advice, more in rows:
        yield torch(name, cause, advice, python=python, **more)


TORCH = [*of_torch(planted.TORCH2), *of_torch(planted.TORCH1)]
TORCH += [
    torch("raises", r"ValueError: bad batch", rank=2, further=("--record",)),
    torch("much_to_say", r"ValueError: bad batch: 7, 7", further=("--record",)),
    torch("other_state", r"loading state_dict for Linear", further=("--record",)),
    torch("loader_raises", r"ValueError: bad sample", further=("--record",)),
    torch("wrong_dtype", r"RuntimeError: (expected|mat1 and mat2).*dtype"),
    torch("backward_twice", r"RuntimeError: Trying to backward through the graph a second time"),
    torch("other_fingerprint", r"Rank 1 runs|rank 1 calls broadcast", rank=None, target=1,
          env={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}),
    torch("asks_for_nccl", r"NCCL|nccl", "nccl|gloo", rank=None),
    torch("serves_the_store_itself", r"ddress already in use|EADDRINUSE", "--master-store=worker",
          rank=0),
    torch("expects_too_many", r"wait timeout after 3000ms|rank 3 has not come", "fewer ranks came",
          rank=None, within=WAITS),
    torch("misses_its_checkpoint", r"FileNotFoundError: .*checkpoint\.pt", "missing"),
    torch("cannot_read_its_checkpoint", r"zip archive|central directory|Unpickling"),
    torch("wants_too_much_memory", r"allocate memory", "out of memory"),
    torch("raises", r"ValueError: bad batch", rank=3, hosts=2, nproc=2, host=1),
    torch("is_killed", r"SIGKILL", "node1", rank=2, hosts=2, nproc=2, host=1),
    torch("leaves_early", r"exited with code 0 before the others", "unequal", rank=2, hosts=2,
          nproc=2, host=1),
    torch("sleeps", r"rank 3 \(node1\)", "rank 3 on node1", rank=3, hosts=2, nproc=2, host=1,
          within=WAITS),
    torch("loader_raises", r"ValueError: bad sample", rank=5, hosts=3, nproc=2, host=2),
    dataclasses.replace(
        torch("works", r"Socket Timeout|wait timeout|different|Invalid backend", "same torch", rank=None,
              hosts=2, nproc=1, within=WAITS), name="torch 1.13 on the second host",
        host=None,  # Of two releases none is wrong; whose time is up first is chance.
        torchrun=False,
        only={1: {"env": {"PYTHON_EXEC": planted.TORCH1}}}),
]

PLANTS = [*TEST_PLANTS, *FURTHER, *TWO_HOSTS, *THREE_HOSTS, *NODES, *NETWORKS, *STARTS, *TORCH]
