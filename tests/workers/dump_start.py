#!/usr/bin/python3 -SE
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A worker that writes how it was started to $DUMP/RANK_RESTARTS.json: arguments, environment,
working directory. While the restart count is below $DUMP_FAILS, all workers fail once all have
written theirs: a file that is there is whole, since the launcher may end its writer at once."""

import json
import os
import pathlib
import sys
import time


def main():
    words = pathlib.Path("/proc/self/cmdline").read_bytes().decode().split("\0")[:-1]
    restarts = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    facts = {"argv": words, "env": dict(os.environ), "cwd": os.getcwd()}
    path = pathlib.Path(os.environ["DUMP"], f"{os.environ['RANK']}_{restarts}.json")
    unfinished = path.with_suffix(".new")
    unfinished.write_text(json.dumps(facts), encoding="utf-8")
    unfinished.rename(path)
    if restarts < int(os.environ.get("DUMP_FAILS", "0")):
        deadline = time.monotonic() + 60
        while (len(list(path.parent.glob(f"*_{restarts}.json"))) < int(os.environ["WORLD_SIZE"])
               and time.monotonic() < deadline):
            time.sleep(0.02)
        sys.exit(7)


main()
