// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/tap.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agent/workers/process/descendants.h"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"
#include "proto/contract/env_contract.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxServers = 4096;
constexpr int kMostGenerations = 16;        // From a worker to its server.
constexpr size_t kMaxSocketNameBytes = 24;  // "/<rank>.<pid>"
constexpr char kShortParent[] = "/tmp";     // Where TMPDIR will not do.

// An entry point for torch would be shorter, but show up among the installed packages.
constexpr char kSite[] = R"py(# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Python imports this when it starts. It has hlaunch_tap told when torch is imported, or what of jax
finds a job's ranks, and then does what the environment's own sitecustomize does."""

import os
import sys


class _After(object):
    """Has a module told of once it is imported, and is gone then."""

    def __init__(self, name, tell):
        self.name = name
        self.tell = tell
        self.busy = False

    def find_spec(self, name, path=None, target=None):
        if name != self.name or self.busy:
            return None
        self.busy = True
        try:
            from importlib.util import find_spec
            spec = find_spec(name)
        finally:
            self.busy = False
        if spec is None or not hasattr(spec.loader, "exec_module"):
            return spec
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            self.tell(module)

        spec.loader.exec_module = exec_module
        return spec


def _tell_of_jax(clusters):
    import hlaunch_tap
    hlaunch_tap.join_jax(clusters)


def _tell_of_torch(torch):
    if hasattr(torch, "_import_device_backends"):  # torch 2.5 and later.
        import hlaunch_tap
        hlaunch_tap.register()


def _run_next():
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec
    here = os.path.dirname(os.path.abspath(__file__))
    others = [path for path in sys.path if os.path.abspath(path) != here]
    spec = PathFinder.find_spec(__name__, others)
    if spec is not None:
        sys.modules[__name__] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[__name__])


if sys.version_info >= (3, 5):
    for name, tell in (("torch", _tell_of_torch), ("jax._src.clusters", _tell_of_jax)):
        if name in sys.modules:  # This process is a fork of one that has imported it.
            tell(sys.modules[name])
        else:
            sys.meta_path.insert(0, _After(name, tell))
    _run_next()
)py";

// It swallows all errors, because the script did not ask for it. The server object is never
// destroyed, since that would write to stderr at the end of every rank. Its socket is removed
// before the interpreter ends, so that no question comes while it ends.
constexpr char kModule[] = R"py(# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Opens torch's own control server in this rank for the hlaunch that started it: HLAUNCH_TAP=0
switches it off. sitecustomize calls register() at the end of `import torch`."""

import os
import sys


def register():
    # hlaunch sets both names. The second one is for torch before 2.2; a later torch warns of it.
    if "TORCH_NCCL_ASYNC_ERROR_HANDLING" in os.environ:
        os.environ.pop("NCCL_ASYNC_ERROR_HANDLING", None)
    try:
        _open(os.environ.get("HLAUNCH_TAP", ""), os.environ.get("RANK", ""))
    except Exception:  # No import may fail for this.
        pass


def _open(directory, rank):
    if not os.path.isabs(directory) or not rank.isdigit() or _is_child():
        return
    if os.environ.get("TORCH_WORKER_SERVER_SOCKET"):
        return
    import atexit
    import ctypes
    from torch._C import _distributed_c10d as c10d
    _record()
    _show_stacks()  # Before the server's thread opens files, so that its descriptor is always one.
    path = os.path.join(directory, "%s.%d" % (rank, os.getpid()))
    server = _quietly(c10d._WorkerServer, path)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(server))
    atexit.register(_remove, path, os.getpid())
    if hasattr(c10d, "_register_handler"):
        c10d._register_handler("hlaunch_groups", _groups)
        c10d._register_handler("hlaunch_progress", _progress)
        c10d._register_handler("hlaunch_pace", _paces)
        c10d._register_handler("hlaunch_waits", _waits)


def join_jax(clusters):
    """jax.distributed.initialize() without arguments asks a class for this rank's place. JAX itself
    reads the address of the coordinator. Ours is asked first: another's may warn or be wrong."""
    _tell_neuron()
    try:
        class HlaunchCluster(clusters.ClusterEnv):
            name = "hlaunch"

            @classmethod
            def is_env_present(cls):
                return "JAX_PROCESS_ID" in os.environ and "JAX_NUM_PROCESSES" in os.environ

            @classmethod
            def get_coordinator_address(cls, *_, **__):
                return os.environ["JAX_COORDINATOR_ADDRESS"]

            @classmethod
            def get_process_count(cls):
                return int(os.environ["JAX_NUM_PROCESSES"])

            @classmethod
            def get_process_id(cls):
                return int(os.environ["JAX_PROCESS_ID"])

            @classmethod
            def get_local_process_id(cls):
                return _own_device()

        kinds = clusters.ClusterEnv._cluster_types
        kinds.remove(HlaunchCluster)
        kinds.insert(0, HlaunchCluster)
    except Exception:  # These are private names of JAX.
        pass


def _tell_neuron():
    """JAX on Trainium reads two more variables: its place, and how many cores each process has. All
    have as many as this one. Which it has only a list or a number tells; without them the variables
    are left to the user. (torch's plug-in sets them itself, unless they are there.)"""
    index, each = "NEURON_PJRT_PROCESS_INDEX", "NEURON_PJRT_PROCESSES_NUM_DEVICES"
    if "NEURON_RT_ROOT_COMM_ID" not in os.environ or index in os.environ or each in os.environ:
        return
    try:
        processes, cores = int(os.environ["JAX_NUM_PROCESSES"]), 0
        for part in os.environ.get("NEURON_RT_VISIBLE_CORES", "").split(","):
            first, _, last = part.partition("-")
            cores += int(last or first) - int(first) + 1 if part else 0
        cores = cores or int(os.environ.get("NEURON_RT_NUM_CORES", "0"))
        if processes > 1 and cores > 0:
            os.environ[index] = os.environ["JAX_PROCESS_ID"]
            os.environ[each] = ",".join([str(cores)] * processes)
    except (KeyError, ValueError):
        pass


def _own_device():
    """Which of the visible devices is this rank's: None if all are."""
    ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        if len(os.environ.get(name, "," * ranks).split(",")) < ranks:
            return None  # Each rank sees its own only.
    return int(os.environ["LOCAL_RANK"]) if ranks > 1 else None


def _show_stacks():
    """The server cannot while something holds Python's lock; faulthandler needs no lock."""
    import faulthandler
    import signal
    number = signal.SIGRTMAX - 7  # As hlaunch.heartbeat() has it. No common program uses it.
    if signal.getsignal(number) == signal.SIG_DFL:
        faulthandler.register(number, file=os.memfd_create("hlaunch-stacks"), all_threads=True)


def _is_child():
    """A data loader and its like, which have the rank of the worker that made them."""
    made = sys.modules.get("multiprocessing.process")
    return made is not None and made.parent_process() is not None


def _record():
    """Before torch 2.13 the flight recorder is off unless somebody wants it; torch 2.9 and later
    warn of the second name."""
    import torch
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    names = "TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"
    if version < (2, 13) and not any(name in os.environ for name in names):
        for name in names if version < (2, 9) else names[:1]:
            os.environ[name] = "2000"


def _quietly(make, path):
    """The server greets with a warning."""
    stderr, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        return make(path)
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(nowhere)


def _remove(path, pid):
    if os.getpid() == pid:
        try:
            os.unlink(path)
        except OSError:
            pass


def _groups(request, response):
    """Which ranks a process group has, and what it is for: the flight recorder does not know the
    first of gloo's groups, and neither of hlaunch's."""
    groups = {}
    try:
        import json
        c10d = sys.modules.get("torch.distributed.distributed_c10d")
        if c10d is not None:
            for group, ranks in list(c10d._world.pg_group_ranks.items()):
                if group in c10d._world.pg_names:  # Others are those that it is no member of.
                    groups[c10d._world.pg_names[group]] = {
                        "ranks": sorted(ranks), "desc": getattr(group, "group_desc", "") or ""}
        response.set_content(json.dumps(groups), "application/json")
        response.set_status(200)
    except Exception:
        response.set_status(500)


def _progress(request, response):
    """How many collectives each group on CPUs has called. Gloo's record tells that, too, but is
    long. A second line says what the main thread does."""
    try:
        import json
        import torch
        c10d = sys.modules["torch.distributed.distributed_c10d"]
        told = {}
        for group, name in list(c10d._world.pg_names.items()):
            if "cpu" in c10d._world.pg_backend_config[group]:
                backend = group._get_backend(torch.device("cpu"))
                told[name] = backend._get_sequence_number_for_group()
        response.set_content(json.dumps(told) + "\n" + _pace_text(), "text/plain")
        response.set_status(200)
    except Exception:
        response.set_status(500)


def _paces(request, response):
    """The second line alone."""
    response.set_content("\n" + _pace_text(), "text/plain")
    response.set_status(200)


def _pace_text():
    try:
        import json
        return json.dumps(_pace())
    except Exception:
        return "{}"


def _pace():
    """Whether the main thread waits in a collective, saves a checkpoint or works, and the line of
    the script in which it does. DDP waits in C++ at the end of backward(), where a CPU works else;
    for a device, another thread does that."""
    import threading
    frame = sys._current_frames()[threading.main_thread().ident]
    with open("/proc/self/stat") as stat:
        sleeps = stat.read().rpartition(")")[2].split()[0] == "S"
    does, at, depth = "works", "", 0
    name, path = frame.f_code.co_name, frame.f_code.co_filename
    if sleeps and path.endswith("torch/autograd/graph.py"):
        cuda = sys.modules.get("torch.cuda")
        does = "unknown" if cuda is not None and cuda.is_initialized() else "waits"
    elif sleeps and _is_in_wait_once(frame.f_code, frame.f_lasti):
        does = "unknown"  # Perhaps for a message.
    while frame is not None and depth < 64:
        name, path = frame.f_code.co_name, frame.f_code.co_filename
        if "torch/distributed/checkpoint/" in path or (
                name == "save" and path.endswith("torch/serialization.py")):
            does = "saves"
        elif does != "saves" and path.endswith(_CALLS) and name.startswith(_COLLECTIVES):
            does = "waits"
        if not at and not any(part in path for part in _LIBRARIES):
            at = "%s (%s:%d)" % (name, os.path.basename(path), frame.f_lineno or 0)
        frame, depth = frame.f_back, depth + 1
    return {"does": does, "at": at, "groups": _called()}


def _called():
    """The groups that have called a collective, as far as their backends count them."""
    called = []
    c10d = sys.modules["torch.distributed.distributed_c10d"]
    for group, name in list(c10d._world.pg_names.items()):
        try:
            if group._get_sequence_number_for_group() == 0:
                continue
        except Exception:
            pass
        called.append(name)
    return called[:32]


_CALLS = ("distributed_c10d.py", "_functional_collectives.py")
_COLLECTIVES = ("all_reduce", "all_gather", "all_to_all", "barrier", "broadcast", "gather",
                "monitored_barrier", "reduce", "scatter", "wait_tensor", "_all_gather", "_reduce")
_LIBRARIES = ("site-packages/", "dist-packages/", "/lib/python3", "<frozen ")
_known_waits = {}


def _is_in_wait_once(code, place):
    """As _is_in_wait, which takes long for long functions."""
    if (code, place) not in _known_waits:
        if len(_known_waits) > 256:
            _known_waits.clear()
        _known_waits[code, place] = _is_in_wait(code, place)
    return _known_waits[code, place]


def _waits(request, response):
    """Whether the main thread is in a call of something's wait() that C++ does, as torch's own
    pieces of work do: it has no frame, and gloo records no messages."""
    try:
        import threading
        frame = sys._current_frames()[threading.main_thread().ident]
        response.set_content(str(int(_is_in_wait(frame.f_code, frame.f_lasti))), "text/plain")
        response.set_status(200)
    except Exception:
        response.set_status(500)


def _is_in_wait(code, place):
    import dis
    name = called = None  # The attribute that was read last; the one that is called at the place.
    for instruction in dis.get_instructions(code):
        if instruction.offset > place:
            break
        called = None
        if instruction.opname in ("LOAD_METHOD", "LOAD_ATTR"):
            name = instruction.argval
        elif "CALL" in instruction.opname and instruction.opname != "PRECALL":
            called, name = name, None
    return called == "wait"
)py";

constexpr const char* kPackages[][2] = {{"sitecustomize.py", kSite}, {"hlaunch_tap.py", kModule}};

// Makes the modules in `directory`, which nobody else may enter. The message says why, but not
// where.
absl::Status WritePackages(const std::string& directory) {
  for (const auto& [name, text] : kPackages) {
    const UniqueFd file(::open(absl::StrCat(directory, "/", name).c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                               S_IRUSR | S_IWUSR));
    const auto size = static_cast<ssize_t>(std::strlen(text));
    const ssize_t written = file.valid() ? ::write(file.get(), text, std::strlen(text)) : -1;
    if (written == size) continue;
    return absl::UnavailableError(std::strerror(written < 0 ? errno : ENOSPC));
  }
  return absl::OkStatus();
}

absl::Status CannotMake(const std::string& path, absl::string_view why) {
  return absl::FailedPreconditionError(
      absl::StrCat("no directory for torch's control servers at ", path, ": ", why));
}

// True if handling a signal does not disturb the process: it computes, or is in a call that the
// kernel restarts. A sleep or a poll would end early.
bool BearsSignals(const ProcessEntry& process) {
  constexpr int kRestarted[] = {SYS_read,  SYS_write, SYS_openat, SYS_wait4,
                                SYS_futex, SYS_flock, SYS_fsync,  SYS_fdatasync};
  if (process.state == 'R') return true;
  const std::string call = ReadSmallFile(absl::StrCat("/proc/", process.pid, "/syscall"));
  int number = -1;
  return absl::SimpleAtoi(absl::string_view(call).substr(0, call.find(' ')), &number) &&
         std::find(std::begin(kRestarted), std::end(kRestarted), number) != std::end(kRestarted);
}

bool CameFrom(pid_t pid, pid_t ancestor) {
  for (int i = 0; i < kMostGenerations; ++i) {
    if (pid == ancestor) return true;
    const auto process = ReadProcess(pid);
    if (!process || process->parent <= 1) return false;
    pid = process->parent;
  }
  return false;
}

bool IsTooLong(const std::string& tap) {
  return tap.size() + kMaxSocketNameBytes >= sizeof(sockaddr_un::sun_path);
}

absl::StatusOr<std::unique_ptr<AgentDirectory>> MakeOwn() {
  absl::Status why;
  for (const std::string& parent : {TemporaryDirectory(), std::string(kShortParent)}) {
    auto own = AgentDirectory::Make(parent);
    if (own.ok() && !IsTooLong((*own)->path())) return own;
    why = CannotMake(parent, own.ok() ? "the name is too long" : own.status().message());
  }
  return why;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tap>> Tap::Make(const std::string& directory) {
  std::unique_ptr<AgentDirectory> own;
  std::string path = directory;
  if (path.empty() || IsTooLong(path)) {
    HLAUNCH_ASSIGN_OR_RETURN(own, MakeOwn());
    path = own->path();
  }
  std::unique_ptr<Tap> tap(new Tap(path, std::move(own)));
  const absl::Status written = WritePackages(path);
  if (!written.ok()) return CannotMake(path, written.message());
  return tap;
}

bool WantsTap(const std::vector<std::string>& env) {
  return std::find(env.begin(), env.end(), absl::StrCat(kEnvTap, "=0")) == env.end();
}

Tap::~Tap() {
  for (const auto& [name, text] : kPackages) {
    ::unlink(absl::StrCat(directory_, "/", name).c_str());
  }
}

std::vector<pid_t> TapServers(const std::string& tap, Rank rank) {
  std::vector<pid_t> pids;
  std::error_code error;
  const std::string prefix = absl::StrCat(rank, ".");
  for (std::filesystem::directory_iterator entry(tap, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    absl::string_view rest = name;
    pid_t pid = 0;
    if (absl::ConsumePrefix(&rest, prefix) && absl::SimpleAtoi(rest, &pid)) pids.push_back(pid);
  }
  std::sort(pids.begin(), pids.end());
  if (pids.size() > kMaxServers) pids.resize(kMaxServers);
  return pids;
}

pid_t FindTapServer(const std::string& tap, Rank rank, pid_t worker) {
  for (const pid_t pid : TapServers(tap, rank)) {
    if (CameFrom(pid, worker)) return pid;
  }
  return 0;
}

StackTarget TapStackTarget(const ProcessEntry& process) {
  const int file = BearsSignals(process) ? FindStacksFile(process.pid) : -1;
  if (file < 0) return {process};
  return {process, SIGRTMAX - kTapSignalBelowMax, file};
}

std::string TapSocketPath(absl::string_view tap, Rank rank, pid_t pid) {
  return absl::StrCat(tap, "/", rank, ".", pid);
}

}  // namespace hlaunch
