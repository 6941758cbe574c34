# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""deploy/examples/train_elastic.py in double precision, for fifty_kills.py: train_in_double.py
LINES …

The batch can be divided by any number of workers up to six, so a step does not depend on that
number, except for the order of sums. Each worker first appends a line to LINES: TIME HOST RANK
WORLD ROUND."""

import os
import pathlib
import socket
import sys
import time

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "deploy/examples"


def tell(path):
    told = os.environ
    line = (f"{time.monotonic()} {socket.gethostname()} {told['RANK']} {told['WORLD_SIZE']} "
            f"{told['HLAUNCH_ROUND']}\n")
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(file, line.encode())
    os.close(file)


tell(sys.argv.pop(1))
sys.path.insert(0, str(EXAMPLES))
import torch  # pylint: disable=wrong-import-position
import train_elastic

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
train_elastic.GLOBAL_BATCH = 360
train_elastic.main()
