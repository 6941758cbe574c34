#!/usr/bin/python3 -SE
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A worker without torch that does what its arguments say, in order:
    env                  print the contract's variables and the pid as one JSON line
    family               fork a data loader that forks again, and a grandchild with a session of
                         its own; all ignore SIGTERM and sleep
    stubborn             ignore SIGTERM and SIGINT
    fail RANK CODE N     exit with CODE if this is RANK and the restart count is N
    sleep SECONDS        sleep, then print "done"
    await FILE           wait until FILE exists
    finish N             end here with 0 if the restart count is N
    show NAME            print this variable, or that it is not set
    signals              from now on print SIGTERM, SIGUSR1 and SIGCONT when they come, and go on
"""

import json
import os
import signal
import sys
import time

NAMES = ["RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "NODE_RANK",
         "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_RUN_ID",
         "TORCHELASTIC_USE_AGENT_STORE"]


def say(line):
    os.write(1, f"{line}\n".encode())  # One write, so lines stay whole.


def family():
    def linger():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
        os._exit(0)

    if os.fork() == 0:  # The data loader, in the worker's session.
        if os.fork() == 0:
            linger()
        linger()
    if os.fork() == 0:  # One that escapes: its own session, its parent gone.
        os.setsid()
        if os.fork() == 0:
            linger()
        os._exit(0)
    os.wait()


def main():
    rank, restarts = (int(os.environ.get(name, -1))
                      for name in ("RANK", "TORCHELASTIC_RESTART_COUNT"))
    words = iter(sys.argv[1:])
    for word in words:
        if word == "env":
            facts = {name: os.environ[name] for name in NAMES if name in os.environ}
            say("ENV " + json.dumps({**facts, "pid": os.getpid()}))
        elif word == "family":
            family()
        elif word == "stubborn":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        elif word == "fail":
            who, code, when = int(next(words)), int(next(words)), int(next(words))
            if rank == who and restarts == when:
                os.write(2, f"planted failure of rank {rank}\n".encode())
                os._exit(code)
        elif word == "sleep":
            time.sleep(float(next(words)))
            say("done")
        elif word == "await":
            file = next(words)
            while not os.path.exists(file):
                time.sleep(0.05)
        elif word == "finish":
            if restarts == int(next(words)):
                say("finished")
                return
        elif word == "show":
            name = next(words)
            say(f"SHOW {name}={os.environ.get(name, '(not set)')}")
        elif word == "signals":
            for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGCONT):
                signal.signal(number, lambda got, _: say(f"GOT {signal.Signals(got).name}"))
            say("LISTENS")
        else:
            sys.exit(f"unknown action {word}")


if __name__ == "__main__":
    main()
