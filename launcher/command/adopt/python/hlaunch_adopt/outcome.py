# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""How a job ended, as torch's launch_agent tells it: values by rank, or an exception."""

import glob
import json
import os
import pickle
import re
import signal


class JobFailed(RuntimeError):
    """The job ended without a worker to blame; the message has the reason."""


def values(folder):
    """Returns {global rank: value} of this node's ranks in the last round."""
    found = {}
    for path in glob.glob(os.path.join(glob.escape(folder), "value_*")):
        place = re.fullmatch(r"value_(\d+)_(\d+)", os.path.basename(path))
        if place:
            found.setdefault(int(place.group(1)), {})[int(place.group(2))] = path
    result = {}
    for rank, path in sorted(found[max(found)].items()) if found else ():
        with open(path, "rb") as file:
            result[rank] = pickle.load(file)
    return result


def failure(entrypoint, code, report, logs, began):
    """Returns the exception for a job that `began` then and ended with `code`: torch's own if a
    worker has failed."""
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
    told = read_report(report)
    known = {}
    others = [] if callable(entrypoint) else told.get("consequences") or []
    for worker in [told.get("first_cause"), *others]:
        if worker and isinstance(worker.get("rank"), int) and worker["rank"] not in known:
            known[worker["rank"]] = worker
    if not known:
        return JobFailed(f"hlaunch: {told.get('reason') or 'the job failed'} (exit code {code})")
    failures = {}
    for rank, worker in known.items():
        file = error_file(logs, worker, told, began)
        failures[rank] = ProcessFailure(local_rank=worker.get("local_rank") or 0,
                                        pid=worker.get("pid") or 0, exitcode=exit_code(worker),
                                        error_file=file)
        if not file and worker.get("exception"):  # As of a worker on another host.
            failures[rank].message = worker["exception"]
    return ChildFailedError(name=getattr(entrypoint, "__name__", None) or str(entrypoint),
                            failures=failures)


def read_report(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def exit_code(worker):
    """As Python's: below 0 for a signal, which the report names, as in SIGKILL."""
    name = worker.get("signal")
    if name:
        return -getattr(signal, str(name), 1)
    return worker["exit_code"] if isinstance(worker.get("exit_code"), int) else 1


def error_file(logs, worker, told, began):
    """Returns the newest file in which the worker's @record has told its exception; empty if there
    is none on this host. Older jobs and other users may have left such files in a shared folder."""
    if worker.get("host") != told.get("written_by"):
        return ""
    pattern = os.path.join(glob.escape(logs), "*", "attempt_*", str(worker.get("local_rank")),
                           "error.json")
    return max(filter(lambda path: is_of(path, began), glob.glob(pattern)), key=os.path.getmtime,
               default="")


def is_of(path, began):
    try:
        status = os.stat(path)
    except OSError:
        return False
    return status.st_uid == os.getuid() and status.st_mtime >= began - 1
