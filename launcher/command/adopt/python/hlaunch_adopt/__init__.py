# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Lets hlaunch run the jobs for which programs start torch's elastic agent in Python.

`import torch` calls install() by an entry point. If the user wants it, one function is replaced as
soon as torch's launcher is imported: launch_agent, which all ways into the agent call. Where it is
not wanted, only this file is read.

HLAUNCH_TORCHRUN=1 wants it, =try as well, but lets torch's agent run what hlaunch cannot, and =0,
=off, =no and =false do not. `hlaunch run PROGRAM` sets it for a program, `hlaunch adopt` for an environment.
"""

import os
import sys

LAUNCHER = "torch.distributed.launcher.api"
PACKAGE = "torch.distributed.launcher"  # It has a name for the function, too.
VARIABLE = "HLAUNCH_TORCHRUN"
OFF = ("", "0", "off", "no", "false")  # In any case of letters.
_omp_threads = []  # OMP_NUM_THREADS before torch set it; empty if install() did nothing.


def wanted(environment):
    """Whether launch_agent is to be replaced. A worker that starts an agent is no job of hlaunch's:
    that agent is torch's."""
    return (environment.get(VARIABLE, "").lower() not in OFF and "HLAUNCH_JOB_ID" not in environment
            and "TORCHELASTIC_RUN_ID" not in environment)


def install():
    """torch calls it at the end of its import. No import may fail for it."""
    try:
        if not wanted(os.environ) or _omp_threads:
            return
        _omp_threads.append(os.environ.get("OMP_NUM_THREADS"))
        if LAUNCHER in sys.modules:
            replace(sys.modules[LAUNCHER])
        else:
            sys.meta_path.insert(0, _Finder())
    except Exception as error:  # pylint: disable=broad-except
        say(f"torch's own agent starts jobs of this process: {error!r}")


def omp_threads():
    """OMP_NUM_THREADS as it was before torch's launcher ran; None if it was not set."""
    return _omp_threads[0] if _omp_threads else os.environ.get("OMP_NUM_THREADS")


def say(line):
    if sys.stderr is not None:
        sys.stderr.write(f"hlaunch: {line}\n")
        sys.stderr.flush()


def replace(module):
    """Replaces launch_agent in torch's module, at most once."""
    own = getattr(module, "launch_agent", None)
    if own is None:
        say("this release of torch has no launch_agent, so torch's own agent starts its jobs")
        return
    if hasattr(own, "torchs_own"):
        return

    def launch_agent(config, entrypoint, args, *more, **named):
        from hlaunch_adopt.launch import launch  # pylint: disable=import-outside-toplevel
        return launch(own, config, entrypoint, args, *more, **named)

    launch_agent.torchs_own = own
    launch_agent.__doc__ = own.__doc__
    module.launch_agent = launch_agent
    if getattr(sys.modules.get(PACKAGE), "launch_agent", None) is own:
        sys.modules[PACKAGE].launch_agent = launch_agent


class _Finder:
    """Waits on sys.meta_path for torch's launcher."""

    def find_spec(self, name, path=None, target=None):  # pylint: disable=unused-argument
        if name != LAUNCHER:
            return None
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        from importlib.util import find_spec  # pylint: disable=import-outside-toplevel
        spec = find_spec(name)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            run = spec.loader.exec_module

            def exec_module(module):
                run(module)
                replace(module)

            spec.loader.exec_module = exec_module
        return spec
