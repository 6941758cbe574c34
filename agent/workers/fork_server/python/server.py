# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The fork server of a node: it imports modules once, and each rank is a fork of it. serve() returns
in the ranks, where Python then runs the script as if it had just started. This file, plan.py,
rules.py and rank.py are one module, in this order.

A message is its length in four bytes and words that end with a zero byte. The agent says
  plan MODULES KIND SCRIPT NAMES  what to import, for which script, and the variables that ranks do
                                  not share; all of these are lists with commas but for the script
  check                           whether the imported files are still the same
  fork                            make a fork for each of the sockets that come with it
and the server
  at MODULE PID, skip MODULE WHY, ready MODULES PID, same, changed FILE,
  forked WHY NUMBER:PID...        for each fork the number of its socket, and why some are missing
Each fork waits until the agent says, by the fork's own socket,
  rank AGENT CPUS ENTRY...        become this rank; with its descriptors
"""

import _socket
import ctypes
import gc
import os
import select
import stat
import sys
import time

KNOWN = "@KNOWN@".split()  # What --preload auto imports; see kKnownToFork.

ALL = "all variables"
LOOKS_FOR_ITS_OWN = ("tqdm",)  # In all variables.
QUIET_LIMIT = 60.0  # A module that imports nothing more for so many seconds is given up.
NO_COLLECTIONS = 10 ** 9  # Objects; those of an import are a thousandth of it.
PR_SET_PDEATHSIG = 1
SIGKILL = 9


def serve():
    """Returns in the ranks only."""
    try:
        rank = serve_until_forked()
    except BaseException:
        import traceback
        traceback.print_exc()
        os._exit(4)
    try:
        begin(*rank)
    except BaseException:
        start_anew()


def serve_until_forked():
    """Returns what begin() is to be told, in each rank."""
    link = Link(3)
    words, _ = link.take()
    plan = Plan(words)
    libc = ctypes.CDLL(None)
    kinds = [kind_of(fd) for fd in range(3)]
    sys.path[:0] = plan.first_path
    began, given = time.time(), dict(os.environ)
    names = plan.names
    if names == ["auto"]:
        names, later = in_a_child(plan.imports)
        for name in later:
            link.say("skip", name, plan.why_later)
    with plan.file_of_main(), without_collections():
        loaded = preload(link, libc, plan, names)
    for folder in plan.first_path:
        sys.path.remove(folder)
        sys.path_importer_cache.pop(folder, None)
    if not loaded:
        link.say("ready", "", str(os.getpid()))
        os._exit(0)
    files = None
    gc.freeze()  # No collection before it: it would take time, and a rank has none as it begins.
    link.say("ready", ",".join(loaded), str(os.getpid()))
    while True:
        words, fds = link.take()
        if words[0] != "check" and fork(link, fds):
            words, fds = link.take()
            changed = {name: os.environ.get(name) for name in {*given, *os.environ}
                       if os.environ.get(name) != given.get(name)}
            return link, libc, words, fds, kinds, loaded, changed
        if files is None:  # Only now: the first ranks do not wait for it.
            files = stamps(began)
        if words[0] == "check":
            changed = [path for path, stamp in files.items() if stamp_of(path) != stamp]
            link.say(*(("changed", changed[0]) if changed else ("same",)))


class without_collections:
    """Python looks for no garbage meanwhile: a fifth of an import's time, and it finds next to none.
    A module that sets its own threshold keeps it."""

    def __enter__(self):
        self.usual = gc.get_threshold()
        self.none = (NO_COLLECTIONS, *self.usual[1:])
        gc.set_threshold(*self.none)

    def __exit__(self, *_):
        if gc.get_threshold() == self.none:
            gc.set_threshold(*self.usual)


class Link:
    """The socket to the agent."""

    def __init__(self, fd):
        number = min(os.sysconf("SC_OPEN_MAX"), 1024) - 1  # The ranks' files begin at 3.
        os.dup2(fd, number, inheritable=False)
        os.close(fd)
        self.socket = _socket.socket(fileno=number)

    def move_to(self, fd):
        """From now on `fd` is the socket."""
        os.dup2(fd, self.socket.fileno(), inheritable=False)

    def say(self, *words):
        data = b"".join(os.fsencode(word) + b"\0" for word in words)
        self.socket.sendall(len(data).to_bytes(4, "little") + data)

    def take(self):
        fds = []
        size = int.from_bytes(self._read(4, fds), "little")
        words = self._read(size, fds).split(b"\0")[:-1]
        return [os.fsdecode(word) for word in words], fds

    def _read(self, size, fds):
        data = b""
        while len(data) < size:
            part, extra, _, _ = self.socket.recvmsg(size - len(data), 4096,
                                                    _socket.MSG_CMSG_CLOEXEC)
            if not part:
                os._exit(0)  # The agent is gone, or needs no fork server any more.
            data += part
            for _, _, numbers in extra:
                fds.extend(int.from_bytes(numbers[i:i + 4], sys.byteorder)
                           for i in range(0, len(numbers), 4))
        return data


def in_a_child(make):
    """What make() returns, two lists of words, without what it imports; empty if it fails."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writes, "\n".join("\0".join(words) for words in make()).encode())
        finally:
            os._exit(0)
    os.close(writes)
    text = os.read(reads, 65536).decode()
    os.close(reads)
    os.waitpid(child, 0)
    return [words.split("\0") if words else [] for words in text.partition("\n")[::2]]


def preload(link, libc, plan, names):
    """Returns what was imported. Each module is imported by a child of the process that has
    imported those before it: if it must not stay, nothing of it does. The parents wait."""
    loaded = []
    for name in names:
        if name in sys.modules:
            loaded.append(name)
            continue
        if name.partition(".")[0] in UNFIT:
            link.say("skip", name, UNFIT[name.partition(".")[0]])
            continue
        parent = os.getpid()
        link.say("at", name, str(parent))
        reads, writes = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reads)
            die_with(libc, parent)
            why = try_import(name, plan, lambda: os.write(writes, b"."))
            os.write(writes, ("!" + why).encode(errors="replace") if why else b"=")
            if why:
                os._exit(0)
            os.close(writes)
            loaded.append(name)
            continue
        os.close(writes)
        why = verdict(reads, child, lambda: link.say("at", name, str(parent)))
        os.close(reads)
        if why is None:
            os.waitpid(child, 0)
            os._exit(0)
        link.say("skip", name, why)
    return loaded


def verdict(reads, child, tick):
    """None if the child goes on with its module, else why it is gone."""
    why = "it ends Python while it is imported"
    while True:
        if not select.select([reads], [], [], QUIET_LIMIT)[0]:
            why = "it stands still while it is imported"
            break
        said = os.read(reads, 4096)
        if not said:
            break
        said = said.lstrip(b".")
        if said == b"=":
            return None
        if said:
            why = said[1:].decode(errors="replace")
            break
        tick()
    os.kill(child, SIGKILL)
    os.waitpid(child, 0)
    return why


def die_with(libc, parent):
    libc.prctl(PR_SET_PDEATHSIG, SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


class Ticks:
    """Stands before the finders of modules to tell that an import goes on."""

    def __init__(self, tick):
        self.tick, self.last = tick, time.monotonic()

    def find_spec(self, name, path=None, target=None):
        now = time.monotonic()
        if now > self.last + 1:
            self.last = now
            self.tick()


def watched(names, found):
    """A class for os.environ that records who asks for one of these names, or for all there are."""

    class Environ(type(os.environ)):
        def __getitem__(self, name):
            if name in names:
                found.append((name, who_asks()))
            return super().__getitem__(name)

        def __iter__(self):
            found.append((ALL, who_asks()))
            return super().__iter__()

    return Environ


def who_asks():
    frame = sys._getframe(2)
    while frame.f_back and frame.f_globals.get("__name__") in ("os", "collections.abc"):
        frame = frame.f_back
    return frame.f_globals.get("__name__", "?")


def try_import(name, plan, tick):
    """Imports it, and returns why it must not stay; empty if it may."""
    before, folder, modules = descriptors(), os.getcwd(), set(sys.modules)
    ticks, asked, plain = Ticks(tick), [], type(os.environ)
    sys.meta_path.insert(0, ticks)
    os.environ.__class__ = watched(plan.unshared, asked)
    try:
        __import__(name)
    except BaseException as error:
        return "%s: %s" % (type(error).__name__, str(error).partition("\n")[0])
    finally:
        os.environ.__class__ = plain
        if ticks in sys.meta_path:
            sys.meta_path.remove(ticks)
    for variable, who in asked:
        if variable == ALL and (name.partition(".")[0] in KNOWN or
                                who.partition(".")[0] in LOOKS_FOR_ITS_OWN or
                                is_trusted(who.partition(".")[0])):
            continue
        if who not in MENDED:
            return "%s reads %s while it is imported" % (who, variable)
    if os.getcwd() != folder:
        return "it changes the working directory"
    if sys.path[:len(plan.first_path)] != plan.first_path:
        return "it puts folders before the script's into sys.path"
    why = why_not_to_fork(before) or why_not_ours(name, plan)
    if not why and name.partition(".")[0] not in KNOWN:
        why = why_not_to_share(set(sys.modules) - modules)
    return why


def stamp_of(path):
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def stamps(began):
    """Of all files that were loaded: modules, and the libraries that these brought. None for one
    that has changed since `began`, perhaps after it was loaded: it counts as changed."""
    paths = {file_of(module) for module in list(sys.modules.values())}
    with open("/proc/self/maps") as file:
        paths.update(line[line.index("/"):].rstrip() for line in file if "/" in line)
    return {path: stamp_of(path) if os.stat(path).st_ctime <= began else None
            for path in paths if path and stamp_of(path)}


def kind_of(fd):
    try:
        return stat.S_IFMT(os.fstat(fd).st_mode), os.isatty(fd)
    except OSError:
        return None


def fork(link, sockets):
    """Makes a fork for each socket, and returns True in these. They lead sessions of their own, and
    the process between them and the server has ended, once the agent hears of them: so they are its
    children."""
    why, made = "", b""
    if not is_one_thread():
        why = "it has threads now"
    else:
        reads, writes = os.pipe()
        try:
            between = os.fork()
        except OSError as error:
            between, why = None, "it cannot fork: %s" % error
        if between == 0:
            os.close(reads)
            if become_between(link, sockets, writes):
                return True
            os._exit(0)
        os.close(writes)
        while between is not None:  # Until each fork has said its name, or has ended.
            part = os.read(reads, 65536)
            made += part
            if not part:
                break
        os.close(reads)
        if between is not None and os.waitpid(between, 0)[1] != 0:
            why = "it cannot fork"
    for fd in sockets:
        os.close(fd)
    link.say("forked", why, made.decode())
    return False


def become_between(link, sockets, writes):
    """Returns True in each fork."""
    for index, fd in enumerate(sockets):
        try:
            if os.fork() != 0:
                continue
        except OSError:
            os._exit(1)
        os.setsid()
        link.move_to(fd)
        os.write(writes, b"%d:%d " % (index, os.getpid()))
        for number in (writes, *sockets):
            os.close(number)
        return True
    return False
