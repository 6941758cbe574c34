# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A rank that tells what it finds itself to be, as one line of JSON: two ranks that started in
different ways tell the same, but for what `volatile` names."""

import json
import os
import re
import signal
import sys

import preloaded


def signals():
    with open("/proc/self/status", encoding="ascii") as status:
        names = "SigP", "SigB", "SigI", "SigC", "Shd", "NoNewPrivs"
        return [line.strip() for line in status if line.startswith(names)]


def streams():
    return [[stream.name, stream.mode, stream.encoding, stream.errors, stream.line_buffering,
             stream.write_through, stream.isatty(), stream.seekable(),
             type(stream.buffer).__name__]
            for stream in (sys.stdin, sys.stdout, sys.stderr)]


def descriptors():
    return sorted(int(name) for name in os.listdir("/proc/self/fd"))


def main():
    facts = {
        "volatile": {"forked": preloaded.PID != os.getpid(), "pid": os.getpid(),
                     "rank": os.environ["RANK"], "round": os.environ["HLAUNCH_ROUND"]},
        "parent": os.getppid() == int(os.environ.get("AGENT", os.getppid())),
        "session": os.getsid(0) == os.getpid() == os.getpgrp(),
        "argv": sys.argv, "orig_argv": getattr(sys, "orig_argv", None), "flags": str(sys.flags),
        "path": [path for path in sys.path if "/hlaunch-agent." not in path],
        "main": {name: re.sub("0x[0-9a-f]+", "", repr(getattr(sys.modules["__main__"], name, "")))
                 for name in ("__file__", "__name__", "__spec__", "__doc__", "__package__",
                              "__cached__")},
        "environment": {name: value for name, value in os.environ.items()
                        if name not in ("RANK", "LOCAL_RANK", "MASTER_PORT", "ROLE_RANK", "PMI_ID",
                                        "PMI_PORT",
                                        "TORCHELASTIC_ERROR_FILE", "HLAUNCH_LOG_DIR",
                                        "HLAUNCH_TAP", "PYTHONPATH", "TORCHELASTIC_RUN_ID",
                                        "HLAUNCH_JOB_ID", "HLAUNCH_COMM_SECRET",
                                        "HLAUNCH_PRELOAD", "JAX_PROCESS_ID",
                                        "JAX_COORDINATOR_ADDRESS")},
        "signals": signals(), "streams": streams(), "descriptors": descriptors(),
        "directory": os.getcwd(), "umask": os.umask(0o22), "nice": os.nice(0),
        "cpus": sorted(os.sched_getaffinity(0)),
        "command": open("/proc/self/cmdline", encoding="utf-8").read(),
        "name": open("/proc/self/comm", encoding="utf-8").read(),
        "handlers": [str(signal.getsignal(number)) for number in (
            signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD)],
        "threads": len(os.listdir("/proc/self/task")),
        "customize": "sitecustomize" in sys.modules,
    }
    print("FACTS", json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
