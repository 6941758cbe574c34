# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A script without torch: says its place, and can fail once or wait."""

import os
import signal
import sys
import time

env = os.environ
print(f"rank {env['RANK']} of {env['WORLD_SIZE']}, local {env['LOCAL_RANK']}, node "
      f"{env['GROUP_RANK']}, restart {env['TORCHELASTIC_RESTART_COUNT']}, args {sys.argv[1:]}, by "
      f"{'hlaunch' if 'HLAUNCH_JOB_ID' in env else 'torch'}, wants {env.get('HLAUNCH_TORCHRUN')}, "
      f"side {'adopt' in env.get('PYTHONPATH', '')}, omp {env.get('OMP_NUM_THREADS')}", flush=True)
if "--fail" in sys.argv:
    sys.exit(7 if env["RANK"] == "1" else 0)
if "--fail-once" in sys.argv and env["TORCHELASTIC_RESTART_COUNT"] == "0":
    if env["RANK"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(600)
if "--wait" in sys.argv:
    time.sleep(600)
