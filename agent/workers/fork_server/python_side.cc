// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/fork_server/python_side.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace hlaunch {
namespace {

constexpr char kSite[] = R"py(# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Python imports this when a fork server starts. The server's call returns in each rank, which then
does what the environment's own sitecustomize does."""

import os
import sys


def _serve():
    here = os.path.dirname(os.path.abspath(__file__))
    _, _, others = os.environ["PYTHONPATH"].partition(os.pathsep)  # The first one is this folder.
    if others:
        os.environ["PYTHONPATH"] = others
    else:
        del os.environ["PYTHONPATH"]
    import hlaunch_fork_server
    del sys.modules["hlaunch_fork_server"]
    for path in [path for path in sys.path if os.path.abspath(path) == here]:
        sys.path.remove(path)
        sys.path_importer_cache.pop(path, None)
    hlaunch_fork_server.serve()


def _run_next():
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec
    spec = PathFinder.find_spec(__name__)
    if spec is None:
        raise ImportError("there is no other sitecustomize", name=__name__)  # As if we were none.
    sys.modules[__name__] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[__name__])


if os.environ.pop("HLAUNCH_FORK_SERVER", None) is not None:
    try:
        if sys.version_info < (3, 7):
            raise RuntimeError("Python %d.%d is too old for --preload" % sys.version_info[:2])
        _serve()
    except BaseException as error:  # The script must not run here.
        sys.stderr.write("%s: %s\n" % (type(error).__name__, error))
        os._exit(4)
_run_next()
)py";

constexpr char kServer[] = R"py(# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The fork server of a node: it imports modules once, and each rank is a fork of it. serve() returns
in the ranks, where Python then runs the script as if it had just started.

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
import atexit
import ctypes
import gc
import io
import os
import select
import stat
import sys
import time

KNOWN = "@KNOWN@".split()  # What --preload auto imports; see kKnownToFork.

# What must not be imported before a fork, and why.
UNFIT = {
    "bitsandbytes": "it asks the devices while it is imported",
    "deepspeed": "it asks the devices while it is imported",
    "habana_frameworks": "it opens the devices",
    "jax": "its threads do not live through a fork",
    "mpi4py": "MPI is started once for each process",
    "tensorflow": "its threads do not live through a fork",
    "torch_xla": "it opens the devices",
}

# Modules that keep a rank's variable as they are imported, and the expression by which they do that:
# in each rank, their rank_zero_only.rank becomes its value.
MENDED = {
    "lightning.fabric.utilities.rank_zero": "_get_rank() or 0",
    "lightning_fabric.utilities.rank_zero": "_get_rank() or 0",
    "torchmetrics.utilities.prints": "int(os.environ.get('LOCAL_RANK', 0))",
}

ALL = "all variables"
LOOKS_FOR_ITS_OWN = ("tqdm",)  # In all variables.
QUIET_LIMIT = 60.0  # A module that imports nothing more for so many seconds is given up.
ENDING_TIME = 1.0  # In which threads end that a fork has ended.
NO_COLLECTIONS = 10 ** 9  # Objects; those of an import are a thousandth of it.
READABLE = ("/dev/null", "/dev/random", "/dev/urandom", "/dev/zero")
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


class Plan:
    why_later = "the script runs other code before it, which may change what it sees"

    def __init__(self, words):
        _, names, self.kind, self.script, unshared = words
        self.names = names.split(",")
        self.unshared = set(unshared.split(","))
        safe = getattr(sys.flags, "safe_path", False)
        # What Python puts before sys.path for this script, later than now.
        self.first_path = [] if safe else {
            "script": [os.path.dirname(self._file())], "module": [os.getcwd()]}.get(self.kind, [""])

    def _file(self):
        path = self.script
        if os.path.islink(path):
            path = os.path.join(os.path.dirname(path), os.readlink(path))
        return os.path.realpath(path)

    def file_of_main(self):
        return MainFile(self.script if self.kind == "script" else None)

    def imports(self):
        """The modules of KNOWN that the script imports by itself, in its order: those which it
        imports before all else, and those behind its first statement that may do something."""
        first, later = self.all_imports()
        return [[name for name in names if name.partition(".")[0] in KNOWN]
                for names in (first, later)]

    def all_imports(self):
        """All modules that the script imports, parted likewise."""
        import ast
        first, later = {}, {}
        found = first
        for node in top_level(ast.parse(self._source()), ast):
            for name in imported_by(node, ast):
                if name not in first:
                    found[name] = None
            if not does_nothing(node, ast):
                found = later
        return list(first), list(later)

    def _source(self):
        if self.kind == "code":
            return self.script
        with open(self._file() if self.kind == "script" else self._module_file(), "rb") as file:
            return file.read()

    def _module_file(self):
        from importlib.machinery import PathFinder
        path = None
        for name in self.script.split("."):  # Without running the packages.
            spec = PathFinder.find_spec(name, path)
            path = spec.submodule_search_locations
        if path is not None:
            spec = PathFinder.find_spec("__main__", path)
        return spec.origin


class MainFile:
    """Modules see the script's file in __main__, as they do while it runs."""

    def __init__(self, file):
        self.file, self.main = file, sys.modules["__main__"]

    def __enter__(self):
        if self.file is not None:
            self.main.__file__ = self.file

    def __exit__(self, *_):
        vars(self.main).pop("__file__", None)


def top_level(tree, ast):
    for node in tree.body:
        if isinstance(node, ast.Try):
            for inner in top_level(node, ast):
                yield inner
            for inner in (*node.handlers, *node.orelse, *node.finalbody):
                yield inner
        else:
            yield node


def imported_by(node, ast):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0:
        return [node.module]
    return []


def does_nothing(node, ast):
    """Whether a module that is imported behind this statement sees what it would see before it. The
    statement may name things, and import modules of KNOWN and of Python itself: no other one, which
    may set variables of the environment, and no call."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        names = imported_by(node, ast)
        return bool(names) and all(is_trusted(name.partition(".")[0]) for name in names)
    if getattr(node, "decorator_list", []):
        return False  # Each is called.
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        parts = [node.args]
    elif isinstance(node, ast.ClassDef):
        parts = [*node.bases, *node.keywords, *node.body]
    elif isinstance(node, ast.If):
        never = getattr(node.test, "attr", getattr(node.test, "id", "")) == "TYPE_CHECKING"
        parts = node.orelse if never else [node.test, *node.body, *node.orelse]
    elif isinstance(node, ast.ExceptHandler):
        parts = node.body
    elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.Expr, ast.Pass)):
        parts = list(ast.iter_child_nodes(node))
    elif isinstance(node, ast.Raise):
        return True  # Nothing is imported behind it.
    elif isinstance(node, ast.stmt):
        return False
    else:
        return not acts(node, ast)
    return all(does_nothing(part, ast) for part in parts)


def acts(expression, ast):
    """Whether it calls something, or changes a thing that has another name as well."""
    return any(isinstance(node, (ast.Call, ast.Await, ast.Yield, ast.YieldFrom)) or
               isinstance(node, (ast.Attribute, ast.Subscript)) and
               not isinstance(node.ctx, ast.Load)
               for node in ast.walk(expression))


def is_trusted(name):
    """Whether it is of KNOWN, or a module of Python itself and no file that has its name."""
    from importlib.machinery import PathFinder
    if name in KNOWN or name in sys.builtin_module_names:
        return True
    spec = PathFinder.find_spec(name)
    folder = os.path.dirname(os.__file__)
    return spec is not None and spec.origin is not None and os.path.dirname(spec.origin) in (
        folder, os.path.join(folder, name), os.path.join(folder, "lib-dynload"))


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


def why_not_ours(name, plan):
    beside = {module: path for module, path in top_modules()
              if plan.first_path and os.path.dirname(path) == os.path.abspath(plan.first_path[0])}
    if not beside or name.partition(".")[0] in beside and name in plan.names:
        return ""
    return "it imports %s, which lies beside the script" % list(beside.values())[0]


def top_modules():
    """The names of modules that are in no package, and the file or the folder of each. The script
    is none of them: it is __main__, and multiprocessing calls it __mp_main__ as well."""
    for name, module in list(sys.modules.items()):
        path = file_of(module)
        if path and "." not in name and module is not sys.modules["__main__"]:
            is_package = hasattr(module, "__path__")
            yield name, os.path.dirname(path) if is_package else path


def file_of(module):
    return getattr(module, "__dict__", {}).get("__file__")


def why_not_to_fork(before):
    if not is_one_thread():
        return "it starts threads"
    with open("/proc/self/task/%d/children" % os.getpid()) as file:
        if file.read().strip():
            return "it starts processes"
    signal = sys.modules.get("signal")
    if signal is not None and any(signal.getitimer(timer) != (0, 0) for timer in (
            signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)):
        return "it sets a timer"  # A fork has none.
    for number in descriptors() - before:
        why = why_not_open(number)
        if why:
            return why
    with open("/proc/self/maps") as file:
        for line in file:
            path = line.split(None, 5)[5].rstrip() if line.count(" ") > 5 and "/" in line else ""
            if path.startswith("/dev/") and path not in READABLE:
                return "it maps %s" % path
    torch = sys.modules.get("torch")
    for kind in "cuda", "xpu", "hpu":
        asks = getattr(getattr(torch, kind, None), "is_initialized", None)
        if asks and asks():
            return "it starts %s" % kind
    return ""


def why_not_to_share(names):
    """What of these modules would be equal in all ranks, or go with the first one that ends."""
    known = {top: is_trusted(top) for top in {name.partition(".")[0] for name in names}}
    for name in names:
        module = sys.modules[name]
        if known[name.partition(".")[0]] or not file_of(module):
            continue
        for word, value in list(vars(module).items()):
            if is_generator(value):
                return "%s.%s would give all ranks the same random numbers" % (name, word)
    finalize = getattr(sys.modules.get("weakref"), "finalize", None)
    for entry in list(getattr(finalize, "_registry", {}).values()):
        owner = getattr(getattr(entry, "func", None), "__self__", None)
        if getattr(owner, "__name__", "") == "TemporaryDirectory":
            return "the first rank to end would remove its temporary folder"
    return ""


def is_generator(value):
    """Whether it has a state of random numbers of its own, which mend() does not renew."""
    kinds, renewed = [], []
    random, numpy, torch = (sys.modules.get(name) for name in ("random", "numpy.random", "torch"))
    if random is not None:
        kinds.append(random.Random)
        renewed.append(random._inst)
    if hasattr(numpy, "RandomState"):
        kinds += [numpy.Generator, numpy.RandomState]
        renewed.append(numpy.mtrand._rand)
    if hasattr(torch, "default_generator"):
        kinds.append(torch.Generator)
        renewed.append(torch.default_generator)
    # Of its type only: to ask the value itself may be what a lazy one waits for.
    return (issubclass(type(value), tuple(kinds)) and type(value).__name__ != "SystemRandom" and
            not any(value is one for one in renewed))


def is_one_thread():
    """Some libraries, OpenBLAS among them, end their threads before a fork, and start them again in
    whichever process needs them: so the threads that count are those which a fork leaves."""
    if threads() == 1:
        return True
    import warnings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's own, of a fork with threads.
        child = os.fork()
    if child == 0:
        os._exit(0)
    deadline = time.monotonic() + ENDING_TIME
    ended = False
    while time.monotonic() < deadline and not (ended and threads() == 1):
        ended = ended or os.waitpid(child, os.WNOHANG)[0] == child
        time.sleep(0.001)
    if not ended:
        os.kill(child, SIGKILL)
        os.waitpid(child, 0)
    return ended and threads() == 1


def threads():
    return len(os.listdir("/proc/self/task"))


def descriptors():
    numbers = os.listdir("/proc/self/fd")  # Also the one by which they are listed.
    return {number for number in numbers if os.path.lexists("/proc/self/fd/" + number)}


def why_not_open(number):
    path = os.readlink("/proc/self/fd/" + number)
    mode = os.fstat(int(number)).st_mode
    with open("/proc/self/fdinfo/" + number) as file:
        flags = [int(line.split()[1], 8) for line in file if line.startswith("flags:")][0]
    if path in READABLE or (stat.S_ISDIR(mode) and flags & os.O_ACCMODE == os.O_RDONLY):
        return ""  # A file would have one place from which all ranks read.
    return "it leaves %s open" % path


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


def begin(link, libc, words, fds, kinds, loaded, changed):
    """Makes this process what a rank is before its Python reads the script, but for the modules that
    were `loaded`, and the variables that these have `changed`."""
    agent, cpus, entries = int(words[1]), words[2], words[3:]
    coerced = coerced_locale()
    os.environ.clear()
    for entry in entries:
        name, _, value = entry.partition("=")
        os.environ[name] = value
    os.environ.update(coerced)
    for name, value in changed.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    die_with(libc, agent)
    link.socket.close()
    held = len(fds) > 3 and fds[0] != 3  # A module has the number of MPI's descriptor.
    for target, fd in enumerate(fds):  # They are in ascending order, from 3.
        if fd != target:
            os.dup2(fd, target)
        else:
            os.set_inheritable(fd, True)
    for fd in fds:
        if fd >= len(fds):
            os.close(fd)
    if cpus:
        try:
            os.sched_setaffinity(0, [int(cpu) for cpu in cpus.split(",")])
        except OSError:
            pass  # As when the agent starts it: it runs without.
    if held or in_bad_fork():
        start_anew()
    for number, name, mode in (0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w"):
        if kind_of(number) != kinds[number]:
            renew_stream(number, name, mode)
    mend()
    known = all(name.partition(".")[0] in KNOWN for name in loaded)
    atexit.register(thaw, known)


def coerced_locale():
    """The variable that Python has set itself as it started in the C locale."""
    value = os.environ.get("LC_CTYPE")
    with open("/proc/self/environ", "rb") as file:
        given = value is None or any(entry.startswith(b"LC_CTYPE=")
                                     for entry in file.read().split(b"\0"))
    return {} if given else {"LC_CTYPE": value}


def thaw(known):
    """What is frozen is not freed as Python ends. Triton complains of that, and other libraries
    might. To free it takes longer than the rest of the end, so it is not done for nothing."""
    if not known or "triton" in sys.modules:
        gc.unfreeze()


def in_bad_fork():
    torch = sys.modules.get("torch")
    asks = getattr(getattr(torch, "_C", None), "_cuda_isInBadFork", None)
    return asks is not None and asks()


def start_anew():
    """Becomes the rank in the normal way."""
    import _signal
    for number in _signal.SIGPIPE, _signal.SIGXFSZ:
        _signal.signal(number, _signal.SIG_DFL)
    with open("/proc/self/cmdline", "rb") as file:
        words = file.read().split(b"\0")[:-1]
    try:
        os.execvp(words[0], words)
    finally:
        os._exit(127)


def renew_stream(number, name, mode):
    """As Python makes its standard streams, which depend on the kind of file."""
    old = getattr(sys, "__%s__" % name)
    if old is None or getattr(sys, name) is not old:
        return
    unbuffered = mode == "w" and old.write_through
    # With -u also standard input has that mark, though it has a buffer.
    buffer = io.open(number, mode + "b", 0 if unbuffered else -1, closefd=False)
    raw = buffer if unbuffered else buffer.raw
    raw.name = "<%s>" % name
    lines = not old.write_through and (raw.isatty() or number == 2)
    stream = io.TextIOWrapper(buffer, old.encoding, old.errors, "\n", lines,
                              old.write_through)
    stream.mode = mode
    setattr(sys, name, stream)
    setattr(sys, "__%s__" % name, stream)


def mend():
    """What is new in each process that imports these modules."""
    random = sys.modules.get("numpy.random")
    if "numpy.random.mtrand" in sys.modules and random is not None:
        random.seed()
    torch = sys.modules.get("torch")
    if hasattr(torch, "default_generator"):
        torch.default_generator.seed()
    logging = sys.modules.get("logging")
    if logging is not None:
        logging._startTime = time.time_ns() if sys.version_info >= (3, 13) else time.time()
    threading = sys.modules.get("threading")
    if threading is not None and hasattr(threading.main_thread(), "_set_native_id"):
        threading.main_thread()._set_native_id()  # Not every Python does it after a fork.
    process = sys.modules.get("multiprocessing.process")
    if process is not None:
        process.current_process().authkey = os.urandom(32)
    for name, value in MENDED.items():
        module = sys.modules.get(name)
        if module is not None:
            module.rank_zero_only.rank = eval(value, vars(module))


def preview(names, kind, script):
    """Prints what a server would import, and what not and why. Imports and runs none of it."""
    from importlib.machinery import PathFinder
    plan = Plan(["plan", names, kind, script, ""])
    sys.path[:0] = plan.first_path
    automatic = names == "auto"
    standard = set(getattr(sys, "stdlib_module_names", ())) | set(sys.builtin_module_names)
    first, later = plan.all_imports() if automatic else (plan.names, [])
    for name in first + later:
        top = name.partition(".")[0]
        if top in UNFIT:
            why = UNFIT[top]
        elif name in later and top in KNOWN:
            why = plan.why_later
        elif automatic and top not in KNOWN:
            why = "" if top in standard else "auto does not know it; it can be named"
            if not why:
                continue
        elif top not in sys.modules and PathFinder.find_spec(top) is None and top not in standard:
            why = "there is no such module"
        else:
            why = ""
        print("hlaunch's answer:", name, why)
)py";

// Read as the script of a Python, with the words of `plan` behind it.
constexpr char kPreview[] = R"py(
try:
    preview(*sys.argv[1:4])
    print("hlaunch's end")
except Exception as error:
    print("%s: %s" % (type(error).__name__, str(error).partition("\n")[0]))
)py";

std::string Server() {
  return absl::StrReplaceAll(kServer, {{"@KNOWN@", absl::StrJoin(kKnownToFork, " ")}});
}

absl::Status Cannot(const std::string& path, const std::string& why) {
  return absl::FailedPreconditionError(absl::StrCat("cannot write ", path, ": ", why));
}

}  // namespace

absl::Status WritePythonSide(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return Cannot(directory, error.message());
  for (const auto& [name, text] : {std::pair("sitecustomize.py", std::string(kSite)),
                                   std::pair("hlaunch_fork_server.py", Server())}) {
    const std::string path = absl::StrCat(directory, "/", name);
    std::ofstream file(path, std::ios::trunc);
    file << text;
    file.close();
    if (!file) return Cannot(path, std::strerror(errno));
  }
  return absl::OkStatus();
}

std::string PreviewScript() { return absl::StrCat(Server(), kPreview); }

}  // namespace hlaunch
