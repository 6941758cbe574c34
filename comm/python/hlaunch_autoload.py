# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""By an entry point of torch, every `import torch` calls this where hlaunch is installed."""

import os
import sys


def register():
    """Makes the backend known to torch.distributed in a worker of hlaunch, or if
    HLAUNCH_TORCH_BACKEND=1. With HLAUNCH_TORCHRUN=1, elsewhere, jobs for torch's agent are
    run by hlaunch. Otherwise it imports nothing and changes nothing."""
    in_worker = "HLAUNCH_JOB_ID" in os.environ
    if not in_worker and os.environ.get("HLAUNCH_TORCHRUN", "0") not in ("", "0"):
        adopt()
    if in_worker or os.environ.get("HLAUNCH_TORCH_BACKEND") == "1":
        try:
            import hlaunch.torch  # pylint: disable=import-outside-toplevel
            hlaunch.torch.register()
        except Exception as error:  # pylint: disable=broad-except
            say(f"torch has no backend hlaunch: {error!r}")


def say(line):
    """`import torch` must not fail, whatever fails here."""
    if sys.stderr is not None:
        sys.stderr.write(f"hlaunch: {line}\n")


def adopt():
    """Has hlaunch run the jobs for which this process starts torch's agent; see `hlaunch run`."""
    packages = os.path.dirname(os.path.abspath(__file__))
    sys.path.append(os.path.join(packages, "hlaunch", "adopt"))
    try:
        import hlaunch_adopt  # pylint: disable=import-outside-toplevel
        hlaunch_adopt.install()
    except ImportError as error:
        say(f"torch's own agent starts jobs of this process: {error}")
