#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Tests what happens when a program serves its own store at MASTER_PORT, for the table in
launcher/manual/environment.md. Prints a line "FORM | as set, or unset | outcome" for each form:

    serves   rank 0 had the port and served there
    joins    torch became a client of the store that was there
    ERROR    the name of the exception

With --uncaught, it ends with the exception of the form that fails with every torch. Several ranks
cannot take turns at one port, so with them it only tries env:// as set.
"""

import datetime
import os
import socket
import sys

import torch.distributed as dist

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
ADDRESS, PORT = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
AGENT_STORE = "TORCHELASTIC_USE_AGENT_STORE"
LIMIT = datetime.timedelta(seconds=30)


def explicit():
    return dist.TCPStore(ADDRESS, PORT, WORLD, RANK == 0, LIMIT)


def tcp():
    dist.init_process_group("gloo", init_method=f"tcp://{ADDRESS}:{PORT}", rank=RANK,
                            world_size=WORLD, timeout=LIMIT)


def env():
    dist.init_process_group("gloo", timeout=LIMIT)
    dist.barrier()


FORMS = {"TCPStore(is_master=True)": explicit, "tcp://": tcp, "env://": env}


def served():
    with socket.socket() as probe:
        return probe.connect_ex((ADDRESS, PORT)) == 0


def outcome(form):
    """The outcome of a form, in a process that has tried no other one."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        before = served()
        try:
            kept = form()
            said = "joins" if before else "serves" if served() else "nothing"
            del kept
        except Exception as error:  # Its exception is the outcome.
            said = type(error).__name__
        os.write(theirs, said.encode())
        os._exit(0)
    os.close(theirs)
    said = os.read(ours, 100).decode()
    os.close(ours)
    os.waitpid(child, 0)
    return said


def main():
    if WORLD > 1:
        before = RANK == 0 and served()
        env()
        print(f"env:// | as set | {'joins' if before else 'serves'}", flush=True)
        dist.barrier()
        return
    value = os.environ[AGENT_STORE]
    for attempt, (name, form) in enumerate(FORMS.items()):
        # Torch before 2.5 uses this to tell apart the keys of two process groups in one store.
        os.environ["TORCHELASTIC_RESTART_COUNT"] = str(attempt)
        for setting in ("as set", "unset"):
            os.environ[AGENT_STORE] = value
            if setting == "unset":
                del os.environ[AGENT_STORE]
            print(f"{name} | {setting} | {outcome(form)}", flush=True)
    if "--uncaught" in sys.argv:
        explicit()  # The variable is unset now.


if __name__ == "__main__":
    main()
