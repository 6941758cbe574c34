# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""By an entry point of torch, every `import torch` calls this where hlaunch is installed."""

import os
import sys


def register():
    """Makes the backend known to torch.distributed in a worker of hlaunch, or if
    HLAUNCH_TORCH_BACKEND=1. With HLAUNCH_TORCHRUN=1, elsewhere, jobs for torch's agent are
    run by hlaunch. Otherwise it imports nothing and changes nothing."""
    if "HLAUNCH_JOB_ID" in os.environ or os.environ.get("HLAUNCH_TORCH_BACKEND") == "1":
        import hlaunch.torch  # pylint: disable=import-outside-toplevel
        hlaunch.torch.register()
    elif os.environ.get("HLAUNCH_TORCHRUN", "0") not in ("", "0"):
        adopt()


def adopt():
    """Has hlaunch run the jobs for which this process starts torch's agent; see `hlaunch run`."""
    packages = os.path.dirname(os.path.abspath(__file__))
    sys.path.append(os.path.join(packages, "hlaunch", "adopt"))
    try:
        import hlaunch_adopt  # pylint: disable=import-outside-toplevel
        hlaunch_adopt.install()
    except ImportError as error:
        sys.stderr.write(f"hlaunch: torch's own agent starts jobs of this process: {error}\n")
