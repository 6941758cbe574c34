# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""`hlaunch adopt`: in a Python environment hlaunch runs what torch's agent would, for good.

A .pth file of the environment makes torch find this package and sets the variable that wants it.
Links in its bin/ take the places of launchers that are typed. A JSON file remembers what was there.
hlaunch runs this file with the environment's Python, and has checked the words.
"""

import argparse
import json
import os
import shutil
import sys
import sysconfig

HERE = os.path.dirname(os.path.abspath(__file__))
# Which program a link may replace, by words that its file has; anything if none are given here.
MARKS = {"torchrun": (b"torch.distributed.run",), "deepspeed": (b"deepspeed",)}
# Packages whose programs start jobs, and how.
STARTS_AGENT = ("accelerate", "trl", "axolotl", "lightning", "lightning-fabric", "torchtune",
                "ms-swift", "llamafactory", "torchx", "optimum-habana")
OFF = ("", "0", "off", "no", "false")  # Of HLAUNCH_TORCHRUN, as in __init__.py.


class Cannot(Exception):
    """The message says why, and the way out."""


class Environment:
    """A virtual or conda environment, in which this runs."""

    def __init__(self, prefix, packages, bin_folder):
        self.prefix, self.packages, self.bin = prefix, packages, bin_folder

    @classmethod
    def active(cls):
        prefix = sys.prefix
        if prefix == sys.base_prefix and not os.path.isdir(os.path.join(prefix, "conda-meta")):
            raise Cannot(f"{sys.executable} belongs to no virtual or conda environment; activate "
                         "one, or use hlaunch run")
        return cls(prefix, sysconfig.get_path("purelib"), sysconfig.get_path("scripts"))

    @property
    def door(self):
        return os.path.join(self.packages, "hlaunch_adopt.pth")

    @property
    def lost(self):
        """What a Python of this environment imports if hlaunch is there no more."""
        return os.path.join(self.packages, "hlaunch_adopt_lost.py")

    @property
    def record(self):
        return os.path.join(self.packages, "hlaunch_adopt.json")

    @property
    def files(self):
        return self.door, self.lost, self.record

    def remembered(self):
        try:
            with open(self.record, encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            return None


def door_text(program):
    """The .pth file. Workers need neither variable, so they do not get it."""
    folder = os.path.dirname(HERE)
    return (f"{folder}\n"
            f'import os; "HLAUNCH_JOB_ID" in os.environ or '
            f'os.path.isdir({folder!r}) and (os.environ.setdefault("HLAUNCH_TORCHRUN", "1"), '
            f'os.environ.setdefault("HLAUNCH_PROGRAM", {program!r})) or '
            '__import__("hlaunch_adopt_lost")\n')


def lost_text(place):
    with open(os.path.join(HERE, "lost.py"), encoding="utf-8") as file:
        return file.read().replace("@FOLDER@", os.path.dirname(HERE)).replace("@DOOR@", place.door)


def aside(path):
    return f"{path}.before-hlaunch"


def check_link(path, programs):
    """Raises Cannot if a link may not take this place. `programs` are those to which our links lead,
    also if they are gone."""
    if not os.path.lexists(path) or is_ours(path, programs):
        return
    with open(path, "rb") as file:
        start = file.read(4096)
    marks = MARKS.get(os.path.basename(path), ())
    if marks and not any(mark in start for mark in marks):
        raise Cannot(f"{path} is not the script that its package installs, so it stays; rename it "
                     "first")


def is_ours(path, programs):
    return any(is_link_to(path, program) or (os.path.islink(path) and os.readlink(path) == program)
               for program in programs if program)


def is_link_to(path, program):
    return os.path.islink(path) and os.path.realpath(path) == os.path.realpath(program)


def adopt(place, program, links):
    """Returns the lines to print."""
    remembered = place.remembered() or {"links": {}}
    first, moved, made = not os.path.exists(place.record), [], []
    ours = [program, remembered.get("program")]
    paths = {name: os.path.join(place.bin, name) for name in links}
    try:
        for path in paths.values():
            check_link(path, ours)
        for name, path in paths.items():
            if os.path.lexists(path) and not is_ours(path, ours):
                remembered["links"][name] = aside(path)
            else:
                remembered["links"].setdefault(name, None)
        # First, so that what is only half done can be undone, whoever kills this.
        write(place.record, json.dumps({**remembered, "program": program}, indent=1) + "\n")
        for path in paths.values():
            if is_link_to(path, program):
                continue
            if is_ours(path, ours):
                os.unlink(path)
            elif os.path.lexists(path):
                os.replace(path, aside(path))
                moved.append(path)
            os.symlink(program, path)
            made.append(path)
        write(place.lost, lost_text(place))
        write(place.door, door_text(program))
    except OSError as error:
        if first:
            take_back(place, moved, made)
        raise Cannot(f"cannot change {error.filename}: {error.strerror}") from error
    return [f"{place.prefix}: programs that start torch's agent are run by {program}",
            *(f"{path} is a link to it" for path in paths.values()),
            "an upgrade of torch writes its torchrun back: then say hlaunch adopt again",
            "hlaunch adopt --undo takes all of this back"]


def take_back(place, moved, made):
    """After an adoption that failed, the environment is as it was before."""
    for path in made:
        os.unlink(path)
    for path in moved:
        os.replace(aside(path), path)
    for path in place.files:
        if os.path.isfile(path):
            os.unlink(path)


def undo(place):
    """Returns the lines to print."""
    remembered = place.remembered()
    if remembered is None and not os.path.exists(place.door):
        return [f"{place.prefix}: nothing to undo"]
    remembered = remembered or {"links": {}, "program": ""}
    lines = []
    try:
        for name, before in remembered["links"].items():
            path = os.path.join(place.bin, name)
            if is_ours(path, [remembered["program"]]):
                os.unlink(path)
            if before and os.path.lexists(before):
                if os.path.lexists(path):  # An upgrade has put a newer one there.
                    os.unlink(before)
                else:
                    os.replace(before, path)
            if os.path.lexists(path):
                lines.append(f"{path} is the environment's own")
        for path in place.files:
            if os.path.lexists(path):
                os.unlink(path)
    except OSError as error:
        raise Cannot(f"cannot change {error.filename}: {error.strerror}") from error
    return [f"{place.prefix}: torch's own agent runs the jobs of its programs", *lines]


def show(prefix, place, program, environ):
    """Returns lines about who runs a job that is started in this environment. `place` is None where
    the Python belongs to no environment."""
    adopted = place is not None and os.path.exists(place.door)
    lines = [f"python: {sys.executable}, torch {version_of('torch') or 'is not there'}",
             f"torchrun: {who_is('torchrun', program, environ)}"]
    variable = environ.get("HLAUNCH_TORCHRUN")
    if variable is not None and variable.lower() in OFF:
        who = f"torch, since HLAUNCH_TORCHRUN={variable}"
    elif environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD") == "0":
        who = "torch, since TORCH_DEVICE_BACKEND_AUTOLOAD=0 keeps it from asking hlaunch"
    elif adopted and not is_there(place):
        who = (f"torch, or nobody: {prefix} is adopted by a hlaunch that is gone; say hlaunch adopt, "
               "or hlaunch adopt --undo")
    elif adopted:
        who = f"hlaunch, since {prefix} is adopted"
    elif variable and is_known_to_torch():
        who = f"hlaunch, since HLAUNCH_TORCHRUN={variable}"
    elif variable:
        who = f"torch: HLAUNCH_TORCHRUN={variable} is set, and hlaunch's package is not in this Python"
    else:
        who = "torch; hlaunch run PROGRAM and hlaunch adopt change that"
    lines.append(f"Python programs that start torch's agent: {who}")
    there = [name for name in STARTS_AGENT if version_of(name)]
    if there:
        lines.append(f"of these are here: {', '.join(there)}")
    if version_of("deepspeed"):
        lines.append(f"deepspeed, which starts its ranks itself: {who_is('deepspeed', program, environ)}")
    for name, before in ((place.remembered() or {}).get("links", {}) if place else {}).items():
        path = os.path.join(place.bin, name)
        if not is_link_to(path, program):
            lines.append(f"{path} was a link to hlaunch, and something has replaced it: say hlaunch "
                         "adopt again")
    return lines


def is_there(place):
    """Whether the hlaunch that has adopted the environment is there still."""
    program = (place.remembered() or {}).get("program")
    with open(place.door, encoding="utf-8") as file:
        folder = file.readline().strip()
    return os.path.isdir(folder) and (not program or os.access(program, os.X_OK))


def who_is(name, program, environ):
    path = shutil.which(name, path=environ.get("PATH"))
    if path is None:
        return "there is none in PATH"
    return f"{path}, which is {'hlaunch' if is_link_to(path, program) else 'not hlaunch'}"


def version_of(package):
    from importlib.metadata import PackageNotFoundError, version
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def is_known_to_torch():
    from importlib.metadata import PackageNotFoundError, distribution
    for name in ("hlaunch", "hlaunch-adopt"):
        try:
            if any(entry.group == "torch.backends" for entry in distribution(name).entry_points):
                return True
        except PackageNotFoundError:
            pass
    return False


def write(path, text):
    try:
        with open(f"{path}.draft", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(f"{path}.draft", path)
    except OSError:
        if os.path.exists(f"{path}.draft"):
            os.unlink(f"{path}.draft")
        raise


def main(words):
    parser = argparse.ArgumentParser(prog="hlaunch adopt")
    parser.add_argument("--undo", action="store_true")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--links", default="torchrun")
    parser.add_argument("--program", required=True)
    options = parser.parse_args(words)
    links = [name for name in options.links.split(",") if name != "none"]
    try:
        if options.show:
            try:
                place = Environment.active()
            except Cannot:
                place = None
            lines = show(sys.prefix, place, options.program, os.environ)
        elif options.undo:
            lines = undo(Environment.active())
        else:
            lines = adopt(Environment.active(), options.program, links)
    except Cannot as why:
        sys.stderr.write(f"hlaunch: {why}\n")
        return 2
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
