# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The program of each rank of a function: `python -u call.py FOLDER` runs the function that the file
`call` holds, and writes what it returns to `value_<round>_<rank>`."""

import multiprocessing
import multiprocessing.process
import multiprocessing.spawn
import os
import pickle
import sys


def main(folder):
    with open(os.path.join(folder, "call"), "rb") as file:
        preparation, pickled = pickle.load(file)
    # hlaunch's own folder for torch in this rank stays, at the end.
    paths = preparation.get("sys_path", [])
    preparation["sys_path"] = [*paths, *(path for path in sys.path if path not in paths)]
    process = multiprocessing.process.current_process()
    process._inheriting = True  # So that a main script without a guard is told of it.
    try:
        multiprocessing.spawn.prepare(preparation)
        # As in a process that spawn has made: what this one starts is spawned as well.
        multiprocessing.set_start_method("spawn", force=True)
        process.name = f"SpawnProcess-{int(os.environ['LOCAL_RANK']) + 1}"
        function, args = pickle.loads(pickled)
    finally:
        del process._inheriting
    from torch.distributed.elastic.multiprocessing.errors import record
    write(folder, record(function)(*args))


def write(folder, value):
    try:
        pickled = pickle.dumps(value)
    except Exception:  # pylint: disable=broad-except
        import cloudpickle
        pickled = cloudpickle.dumps(value)
    name = os.path.join(folder, f"value_{os.environ.get('HLAUNCH_ROUND', 0)}_{os.environ['RANK']}")
    with open(f"{name}.draft", "wb") as file:
        file.write(pickled)
    os.rename(f"{name}.draft", name)


if __name__ == "__main__":
    # This file's folder is no place for imports.
    sys.path[:] = [path for path in sys.path if path != os.path.dirname(os.path.abspath(__file__))]
    main(sys.argv[1])
