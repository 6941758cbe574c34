# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""`goodbye.py NAME RANK`: the rank raises and leaves hlaunch's group in its `finally` or by atexit.

The others fail because of its goodbye before it ends. It ends after one of them or, if NAME
contains `stays`, not by itself.
"""

import array
import atexit
import os
import pathlib
import signal
import sys
import time

NAME, RAISES = sys.argv[1], int(sys.argv[2]) == int(os.environ["RANK"])
VICTIM = pathlib.Path(os.environ["PLANT_FOLDER"], "victim")


def end_late():
    """Ends late, as a program with much to clean up."""
    if "stays" in NAME:
        signal.pause()
    while not VICTIM.exists() or pathlib.Path("/proc", VICTIM.read_text(encoding="ascii")).exists():
        time.sleep(0.01)


def train():
    data = array.array("f", [1.0])
    hlaunch.all_reduce(data)
    if RAISES:
        raise ValueError("bad batch")
    try:
        hlaunch.all_reduce(data)
    except hlaunch.RankLost:
        new = VICTIM.with_suffix(f".{os.getpid()}")
        new.write_text(str(os.getpid()), encoding="ascii")
        new.rename(VICTIM)
        raise


if RAISES:
    atexit.register(end_late)  # Registered before hlaunch's, so it runs after that.
import hlaunch  # noqa: E402

hlaunch.init_process_group()
if NAME.startswith("finally"):
    try:
        train()
    finally:
        hlaunch.destroy_process_group()
        if RAISES:
            end_late()
else:
    train()
