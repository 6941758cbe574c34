# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Calls accelerate's notebook_launcher on one host, or as one of several.

Usage: notebook_call.py HOSTS HOST ADDRESS PORT RESTARTS
"""

import os
import signal
import sys
import time

from accelerate import notebook_launcher


def train(kills):
    env = os.environ
    print(f"rank {env['RANK']} of {env['WORLD_SIZE']}, restart {env['TORCHELASTIC_RESTART_COUNT']}, by "
          f"{'hlaunch' if 'HLAUNCH_JOB_ID' in env else 'torch'}", flush=True)
    if kills and env["TORCHELASTIC_RESTART_COUNT"] == "0":
        if env["RANK"] == "1":
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(600)


if __name__ == "__main__":
    hosts, host, address, port, restarts = sys.argv[1:]
    several = {"num_nodes": int(hosts), "node_rank": int(host), "master_addr": address,
               "rdzv_backend": "static"} if int(hosts) > 1 else {}
    notebook_launcher(train, (int(restarts),), num_processes=2, use_port=port, max_restarts=int(restarts),
                      **several)
