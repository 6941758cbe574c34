#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Runs torchrun for many command lines at once, each in a process forked after the import of torch,
which takes seconds. Argument: a JSON file with a list of {"module", "words", "env", "log"}; `env`
is added to the environment. If any of them fails, exits with 1 and prints which."""

import importlib
import json
import os
import pathlib
import sys
import traceback


def run(plan):
    log = os.open(plan["log"], os.O_WRONLY | os.O_CREAT, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.update(plan["env"])
    importlib.import_module(plan["module"]).main(plan["words"])


def main():
    plans = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    for plan in plans:
        importlib.import_module(plan["module"])
    pids = {}
    for plan in plans:
        pid = os.fork()
        if pid == 0:
            try:
                run(plan)
                os._exit(0)
            except BaseException:
                traceback.print_exc()
            os._exit(1)
        pids[pid] = plan
    failed = [plan for pid, plan in pids.items() if os.waitpid(pid, 0)[1] != 0]
    for plan in failed:
        print("failed:", plan, pathlib.Path(plan["log"]).read_text(encoding="utf-8")[-3000:])
    sys.exit(bool(failed))


main()
