#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A rank that does what its argument says; nothing in it knows of hlaunch but the lines up to the first import of torch."""

import os
import sys

MODE = sys.argv[1]
TAP = os.environ.get("HLAUNCH_TAP", "")
if MODE == "tap-is-lost":
    os.environ["HLAUNCH_TAP"] = "/no such directory"

import torch.distributed as dist

if MODE.startswith("tap"):
    sockets = [name for name in os.listdir(TAP) if name != "python"] if TAP else []
    mine = f"{os.environ['RANK']}.{os.getpid()}"
    print(f"{MODE}: {'tapped' if mine in sockets else 'not tapped'}", flush=True)
    sys.exit()
