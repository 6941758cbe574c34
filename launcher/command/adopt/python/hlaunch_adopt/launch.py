# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""What stands in the place of torch's launch_agent.

A script or program becomes a job of hlaunch. If the process is a known command that does nothing
after it, as `accelerate launch`, it becomes hlaunch; else hlaunch is its child. A function is run by
a small Python program in each rank, see call, or by a fork of this process, see forks.
"""

import atexit
import inspect
import os
import shutil
import subprocess
import sys
import tempfile
import time
import weakref

import hlaunch_adopt
from hlaunch_adopt import outcome
from hlaunch_adopt.child import flush, run_child
from hlaunch_adopt.program import HERE, find_program
from hlaunch_adopt.words import Refused, made_folder, words_of

PARAMETERS = ["config", "entrypoint", "args"]  # As in all releases from 2.4 on.
SERVER = "health_check_server"  # Newer ones have it.
# Commands and modules that only start the job, and leave nothing to be done after it.
COMMANDS = {"torchrun", "accelerate", "accelerate-launch", "axolotl", "fabric", "lightning", "trl",
            "tune", "torch.distributed.run", "torch.distributed.launch",
            "accelerate.commands.launch", "accelerate.commands.accelerate_cli"}
TORCHS_OWN = {"torchrun", "torch.distributed.run", "torch.distributed.launch"}
# What hlaunch would read although torch's agent, or torch's launcher before it, has read it; and
# what is for this process alone.
DROPPED = ("HLAUNCH_HOSTS", "HLAUNCH_PROGRAM", hlaunch_adopt.VARIABLE)


def launch(own, config, entrypoint, args, *more, **named):
    """Runs the job as `own`, torch's launch_agent, would."""
    try:
        if not hlaunch_adopt.wanted(os.environ):  # The caller may have changed its mind.
            return own(config, entrypoint, args, *more, **named)
        start = plan(own, config, entrypoint, list(args), *more, **named)
    except Refused as why:
        if os.environ.get(hlaunch_adopt.VARIABLE) == "try":
            hlaunch_adopt.say(f"{why}; torch's own agent runs this job")
            return own(config, entrypoint, args, *more, **named)
        remove_made_folder(config)
        refuse(why)
    server = more[0] if more else named.get(SERVER)
    try:
        return start()
    finally:
        if server is not None:
            server.stop()


def refuse(why):
    """A command ends with one line; a program that calls torch's functions gets an exception."""
    text = f"{why}. {hlaunch_adopt.VARIABLE}=try lets torch's own agent run such jobs, =0 all jobs"
    if caller() in COMMANDS:
        hlaunch_adopt.say(text)
        sys.exit(2)
    raise RuntimeError(f"hlaunch: {text}") from None


def check_call(own, *args, **named):
    """Raises Refused unless all that torch gives its launch_agent is known here."""
    signature = inspect.signature(own)
    if list(signature.parameters)[:3] != PARAMETERS:
        raise Refused(f"this release of torch has launch_agent{signature}, which this hlaunch does not "
                      "know; update hlaunch")
    for name, value in list(signature.bind(*args, **named).arguments.items())[3:]:
        if name != SERVER and value != signature.parameters[name].default:
            raise Refused(f"this release of torch gives launch_agent {name}={value!r}, which this hlaunch "
                          "does not know; leave it out, or update hlaunch")


def plan(own, config, entrypoint, args, *more, **named):
    """Returns what to call to run the job; raises Refused before anything was begun."""
    check_call(own, config, entrypoint, args, *more, **named)
    if entrypoint is None:
        raise Refused("there is no entrypoint: give a program or a function")
    program = find_program()
    words = words_of(config)
    script = script_of(entrypoint)
    if script is None and callable(entrypoint):
        if config.start_method == "fork":
            return lambda: run_forks(program, config, entrypoint, args, words)
        from hlaunch_adopt.pack import pack, tensors_of  # pylint: disable=import-outside-toplevel
        packed = pack(entrypoint, args)
        if tensors_of(args):
            hlaunch_adopt.say("each rank has copies of the tensors among the arguments: what it "
                              "writes there is not seen here")
        return lambda: run_function(program, config, entrypoint, packed, words)
    line = [*(script or ["--no-python", str(entrypoint)]), *(str(arg) for arg in args)]
    if caller() in COMMANDS:
        return lambda: become(program, config, [*ALWAYS, *words, *line])
    return lambda: run_program(program, config, entrypoint, words, line)


ALWAYS = ["--cluster", "none"]  # The configuration says all; no scheduler's variables do.


def script_of(entrypoint):
    """`torchrun --run-path` gives a function of its own that runs a script."""
    own = {"torch.distributed.run"} | ({"__main__"} if caller() in TORCHS_OWN else set())
    if getattr(entrypoint, "__name__", "") == "run_script_path" and entrypoint.__module__ in own:
        return ["--run-path"]
    return None


def caller():
    """The module or the command that this process runs."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    name = getattr(spec, "name", "") or ""
    return name.rpartition(".__main__")[0] or name or os.path.basename(sys.argv[0] or "")


def environment():
    """That of this process, as torch's agent would pass it on to workers."""
    env = {name: value for name, value in os.environ.items()
           if name not in DROPPED and not name.startswith("PET_")}
    # torch's own commands set 1 where nothing is set; hlaunch knows each worker's share of the cores.
    if caller() in TORCHS_OWN and hlaunch_adopt.omp_threads() is None:
        env.pop("OMP_NUM_THREADS", None)
    folder = os.path.dirname(HERE)
    paths = [path for path in env.get("PYTHONPATH", "").split(os.pathsep) if path != folder]
    env["PYTHONPATH"] = os.pathsep.join(paths)
    if not env["PYTHONPATH"]:
        del env["PYTHONPATH"]
    if sys.executable:
        env["HLAUNCH_PYTHON"] = sys.executable  # For --run-path.
    return env


def remove_made_folder(config):
    """torch makes a folder for logs before it asks; hlaunch has its own."""
    folder = made_folder(config) if hasattr(config, "logs_specs") else None
    if folder is not None:
        try:
            os.rmdir(folder)
        except OSError:
            pass  # Somebody has put a file there.


def become(program, config, words):
    """Replaces this process."""
    remove_made_folder(config)
    env = environment()
    flush()
    try:
        os.execve(program, ["torchrun", *words], env)
    except OSError as error:
        refuse(f"cannot run {program}: {error.strerror}")


class Folder:
    """A folder for one job, for its owner alone. It is removed at the latest when Python ends."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="hlaunch-call-")
        self.owner = os.getpid()  # A fork of this process must not remove it.
        atexit.register(self.remove)

    def file(self, name):
        return os.path.join(self.path, name)

    def remove(self):
        atexit.unregister(self.remove)
        if os.getpid() == self.owner:
            shutil.rmtree(self.path, ignore_errors=True)


def run_program(program, config, entrypoint, words, line):
    """Runs a program in all ranks; returns {global rank: None} of this node's ranks."""
    return run_in(Folder(), program, config, entrypoint, words, line,
                  lambda _, told: {rank: None for rank in told.get("ranks", ())})


def run_function(program, config, entrypoint, packed, words):
    """Runs a function in all ranks; returns {global rank: value} of this node's ranks."""
    folder = Folder()
    with open(folder.file("call"), "xb") as file:
        file.write(packed)
    # The flags are those that multiprocessing gives to its processes.
    flags = subprocess._args_from_interpreter_flags()  # pylint: disable=protected-access
    line = ["--stdin=none", "--no-python", sys.executable or "python3", *flags, "-u",
            os.path.join(HERE, "call.py"), folder.path]
    return run_in(folder, program, config, entrypoint, words, line,
                  lambda path, _: outcome.values(path))


def run_forks(program, config, entrypoint, args, words):
    """As run_function, with ranks that are forks of this process."""
    from hlaunch_adopt.forks import Template  # pylint: disable=import-outside-toplevel
    folder = Folder()
    line = ["--stdin=none", "--no-python", sys.executable or "python3", "-I", "-S",
            os.path.join(HERE, "stand_in.py"), folder.path]
    with Template(folder.path, entrypoint, args):
        return run_in(folder, program, config, entrypoint, words, line,
                      lambda path, _: outcome.values(path))


def run_in(folder, program, config, entrypoint, words, line, values):
    remove_made_folder(config)
    report = folder.file("report")
    if "--log-dir" not in words:  # Failures are read there.
        words = [*words, "--log-dir", folder.file("log")]
    logs = words[words.index("--log-dir") + 1]
    failed = None
    began = time.time()
    try:
        code = run_child(program, ["torchrun", *ALWAYS, *words, "--report", report, *line],
                         environment(), config)
        told = outcome.read_report(report)
        code = code or told.get("exit_code", "unknown")  # It is lost where the caller ignores SIGCHLD.
        if code == 0:
            return values(folder.path, told)
        failed = outcome.failure(entrypoint, code, report, logs, began)
        raise failed
    finally:
        if failed is None:
            folder.remove()
        else:  # Whoever catches it may read the workers' files.
            weakref.finalize(failed, folder.remove)
