# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""What every `import torch` of an environment with hlaunch in it calls, by torch's entry points."""

import os


def register():
    """Makes the backend known to torch.distributed in a worker of hlaunch, or where
    HLAUNCH_TORCH_BACKEND=1 asks for it. Anywhere else it imports nothing and changes nothing."""
    if "HLAUNCH_JOB_ID" in os.environ or os.environ.get("HLAUNCH_TORCH_BACKEND") == "1":
        import hlaunch.torch  # pylint: disable=import-outside-toplevel
        hlaunch.torch.register()
