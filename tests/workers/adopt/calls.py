# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Calls torch's elastic_launch with functions and programs, as users do, and prints what came back
as one JSON object. Knows nothing of hlaunch.

Usage: calls.py PLANT... [--nodes N RANK|any ENDPOINT]
"""

import json
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time

import torch
from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch


class Answer:
    """A class of the script; it comes back as this one."""

    def __init__(self, text):
        self.text = text


def ok(word):
    print(f"rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']}, restart "
          f"{os.environ['TORCHELASTIC_RESTART_COUNT']}, by "
          f"{'hlaunch' if 'HLAUNCH_JOB_ID' in os.environ else 'torch'}", flush=True)
    return Answer(f"{word} {os.environ['RANK']} of {os.environ['WORLD_SIZE']}")


def raises(word):
    if os.environ["RANK"] == "1":
        raise ValueError(f"{word} was planted")
    time.sleep(600)


def exits(_):
    if os.environ["RANK"] == "1":
        sys.exit(7)
    time.sleep(600)


def cleans(_):
    """Rank 0 is told to end, and does what is below `finally` first."""
    path = os.path.join(tempfile.gettempdir(), f"cleans{os.environ['MASTER_PORT']}")
    if os.environ["RANK"] == "1":
        wait_for(path)
        sys.exit(7)
    try:
        touch(path)
        time.sleep(600)
    finally:
        os.unlink(path)
        print("cleaned", flush=True)


def killed(_):
    if os.environ["RANK"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(600)


def once(word):
    if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        killed(word)
    return ok(word)


def flags(_):
    return Answer(f"{__debug__} {sys.warnoptions} {multiprocessing.get_start_method()} "
                  f"{multiprocessing.current_process().name}")


def release(_):
    return Answer(str(torch.__version__))


def waits(_):
    print("waits", flush=True)
    time.sleep(600)


settings = {"seed": 0}  # The caller changes it; only a fork of it has what it has set.


def is_fork(held):
    """`held` is an open file, which no process can be sent."""
    print(f"rank {os.environ['RANK']} prints", flush=True)
    return Answer(f"{settings['seed']} {held.read()} {os.environ['RANK']} of {os.environ['WORLD_SIZE']}")


def leaves(word):
    """A process in a session of its own, which holds all of the rank's files."""
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
    return ok(word)


def one_outlives_the_other(forks):
    """Two jobs at once. The second, begun while the first ran, ends only once the first has."""
    with tempfile.TemporaryDirectory() as folder:
        began, both, over = (os.path.join(folder, name) for name in ("began", "both", "over"))

        def first(_):
            touch(began)
            wait_for(both)

        def second(word):
            touch(both)
            wait_for(over)
            return Answer(f"{word} {os.environ['RANK']} of {os.environ['WORLD_SIZE']}")

        def run_first():
            elastic_launch(forks, first)("first")
            touch(over)

        thread = threading.Thread(target=run_first)
        thread.start()
        wait_for(began)
        values = elastic_launch(forks, second)("second")
        thread.join()
        return values


def touch(path):
    with open(path, "w", encoding="utf-8"):
        pass


def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.05)


def config(restarts=0):
    if "--nodes" not in sys.argv:
        return LaunchConfig(1, 1, 2, run_id="t", rdzv_backend="c10d", max_restarts=restarts,
                            rdzv_endpoint="localhost:0", monitor_interval=0.1)
    nodes, rank, endpoint = sys.argv[sys.argv.index("--nodes") + 1:][:3]
    if rank == "any":
        return LaunchConfig(int(nodes), int(nodes), 2, run_id="t", rdzv_backend="c10d",
                            max_restarts=restarts, rdzv_endpoint=endpoint)
    return LaunchConfig(int(nodes), int(nodes), 2, run_id="t", rdzv_backend="static",
                        rdzv_endpoint=endpoint, max_restarts=restarts,
                        rdzv_configs={"rank": int(rank)}, local_addr="127.0.0.1")


def call(plant):
    word = "hello"
    if plant.startswith("fork-"):
        _, _, name = plant.partition("-")
        settings["seed"] = 7
        forks = config(restarts=1 if name == "once" else 0)
        forks.start_method = "fork"
        if name == "threads":
            return one_outlives_the_other(forks)
        if name == "is_fork":
            with open(os.devnull, encoding="utf-8") as file:
                return elastic_launch(forks, lambda held: is_fork(held))(file)
        return elastic_launch(forks, globals()[name])(word)
    if plant == "ignores-children":  # From here on.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        return {}
    if plant == "program":
        return elastic_launch(config(), "/bin/true")()
    if plant.startswith("script"):
        ranks = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ranks.py")
        once = ["--fail-once"] if plant == "script-once" else []
        return elastic_launch(config(restarts=len(once)), sys.executable)("-u", ranks, *once)
    if plant == "program-fails":
        return elastic_launch(config(), "/bin/sh")("-c", "exit $((3 * RANK))")
    if plant == "lambda":
        return elastic_launch(config(), lambda each: Answer(f"{word} {each}"))("x")
    if plant == "tensor":
        return elastic_launch(config(), print)(torch.zeros(1))
    if plant == "shared":
        return elastic_launch(config(), ok)([torch.zeros(1).share_memory_()])
    if plant == "lock":
        return elastic_launch(config(), ok)(open(os.devnull, "rb"))
    return elastic_launch(config(restarts=1 if plant == "once" else 0), globals()[plant])(word)


def told(plant):
    try:
        values = call(plant)
        return {str(rank): value if value is None else [isinstance(value, Answer), value.text]
                for rank, value in sorted(values.items())}
    except ChildFailedError as error:
        return {"failed": error.name,
                "failures": {str(rank): [each.exitcode, each.local_rank, message(each)]
                             for rank, each in error.failures.items()},
                "first": error.get_first_failure()[0]}
    except SignalException as error:
        return {"signal": int(error.sigval)}
    except KeyboardInterrupt:
        return {"signal": "KeyboardInterrupt"}
    except (RuntimeError, TypeError) as error:
        return {"error": str(error)}


def message(failure):
    return failure.message["message"] if isinstance(failure.message, dict) else failure.message


if __name__ == "__main__":
    plants = sys.argv[1:sys.argv.index("--nodes")] if "--nodes" in sys.argv else sys.argv[1:]
    before = signal.getsignal(signal.SIGINT)
    print("TOLD " + json.dumps({each: told(each) for each in plants}))
    print("handlers", "as before" if signal.getsignal(signal.SIGINT) is before else "changed")
