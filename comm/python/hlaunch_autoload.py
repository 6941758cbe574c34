# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""By an entry point of torch, every `import torch` calls this where hlaunch is installed."""

import os


def register():
    """Makes the backend known to torch.distributed in a worker of hlaunch, or if
    HLAUNCH_TORCH_BACKEND=1. Otherwise it imports nothing and changes nothing."""
    if "HLAUNCH_JOB_ID" in os.environ or os.environ.get("HLAUNCH_TORCH_BACKEND") == "1":
        import hlaunch.torch  # pylint: disable=import-outside-toplevel
        hlaunch.torch.register()
