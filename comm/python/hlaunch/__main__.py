# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""`python -m hlaunch`: replaces itself by the program that was installed with this package. That one
runs scripts with the Python that ran this."""

import os
import shutil
import sys
import sysconfig


def candidates(name):
    """Yields the paths where the program may be, in the order in which to look."""
    packages = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for up in ("", "..", os.path.join("..", "..", "..")):  # pip --target; a build; a prefix.
        yield os.path.join(packages, up, "bin", name)
        yield os.path.join(packages, up, "libexec", "hlaunch", name)
    for scheme in (sysconfig.get_default_scheme(), f"{os.name}_user"):
        yield os.path.join(sysconfig.get_path("scripts", scheme), name)
    found = shutil.which(name)
    if found:
        yield found


def become(name, as_name):
    """Replaces this process by the program `name`, called `as_name`."""
    for path in candidates(name):
        if os.access(path, os.X_OK):
            os.execv(path, [as_name if as_name != name else path, *sys.argv[1:]])
    sys.exit(f"hlaunch: there is no program {name} beside this package or in PATH: install both by "
             "pip install hlaunch")


def rendezvous():
    """hlaunch-rendezvous of a wheel, which has no links: runs the agent's program by that name."""
    become("hlaunch-agent", "hlaunch-rendezvous")


if __name__ == "__main__":
    if sys.executable:
        os.environ["HLAUNCH_PYTHON"] = sys.executable
    become("hlaunch", "hlaunch")
