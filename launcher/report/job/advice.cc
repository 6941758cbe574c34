// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/job/advice.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <initializer_list>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/workers/failure/unserved_mpi.h"
#include "launcher/cli/options/option_table.h"
#include "launcher/report/job/complaint.h"
#include "launcher/text/printable.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/round/cause/first_cause.h"

namespace hlaunch {
namespace {

constexpr size_t kHostsNamed = 2;

// A sign of a failure and what to do about it. {host} stands for the worker's host, {where} for all
// hosts whose workers printed the same, {awaited} for the workers that did not fail.
struct Row {
  // The text must contain one of these; empty ones do not count.
  std::array<absl::string_view, 3> words;
  absl::string_view advice;
};

// The more specific rows come first.
constexpr Row kRows[] = {
    // Devices: messages of CUDA, torch and Intel Gaudi's software, taken from their sources and
    // reports of users. We have seen a full GPU and late errors of CUDA ourselves, on an H200.
    {{"invalid device ordinal", "No CUDA GPUs are available", "no CUDA-capable device"},
     "{host} has fewer GPUs than workers: lower --nproc-per-node, or look at CUDA_VISIBLE_DEVICES"},
    {{"CUDA driver version is insufficient", "driver on your system is too old", ""},
     "the driver of {host} is older than this torch needs: update it, or install the torch that "
     "nvidia-smi's CUDA version asks for"},
    {{"Found no NVIDIA driver", "not compiled with CUDA enabled", ""},
     "this torch finds no GPU on {host}: install the driver and a torch with CUDA there, or use "
     "the "
     "CPU"},
    {{"CUDA-capable devices are busy", "CUDA error: device is busy", ""},
     "a GPU of {host} is held by another process (nvidia-smi names it): end that, or use another"},
    {{"CUDA out of memory", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED"},
     "a GPU of {host} is full: a smaller batch, PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, "
     "or end what else uses it (nvidia-smi)"},
    {{"device-side assert", "an illegal memory access was encountered", ""},
     "CUDA tells of this late: run again with CUDA_LAUNCH_BLOCKING=1 for the line that did it"},
    {{"PT_DEVMEM", "Allocation failed for size", ""},
     "a Gaudi card of {host} is full: a smaller batch, or end what else uses it (hl-smi)"},
    {{"Device acquire failed", "acquire failed", "synDeviceAlreadyAcquired"},
     "a Gaudi card of {host} is held by another process: hl-smi names it; or there are more "
     "workers than cards"},
    {{"Graph compile failed", "synStatus", ""},
     "Gaudi's own words are in HABANA_LOGS (default ~/.habana_logs) on {host}; a smaller batch "
     "tells whether it was memory"},
    {{kUnservedMpi[0], kUnservedMpi[1], kUnservedMpi[2]}, kAdviceOnUnservedMpi},
    // Collectives.
    {{"requires at least one CUDA device", "no GPUs found", ""},
     "NCCL needs a GPU, and this worker sees none: init_process_group(\"gloo\"), or see "
     "`hlaunch devices`"},
    {{"doesn't have NCCL built in", "", ""},
     "this torch has no NCCL: init_process_group(\"gloo\"), or install a torch with CUDA"},
    {{"NCCL version mismatch", "ncclInvalidUsage: version", ""},
     "the nodes have different NCCL: install the same torch on all of them"},
    {{"Watchdog caught collective operation timeout", "NCCL operations have failed or timed out",
      "Heartbeat monitor timed out"},
     "a worker was late for a collective: see where {awaited} stands (py-spy dump --pid PID), or "
     "allow longer with init_process_group(timeout=...)"},
    {{"unhandled system error", "ncclSystemError", ""},
     "NCCL_DEBUG=INFO tells more; often NCCL_SOCKET_IFNAME must name the interface between the "
     "nodes, or /dev/shm is full"},
    {{"unhandled cuda error", "ncclUnhandledCudaError", ""},
     "NCCL_DEBUG=INFO tells more; often two workers use one GPU: choose by LOCAL_RANK"},
    {{"distributed collective mismatch", "", ""},
     "the ranks called a collective with different sizes: TORCH_DISTRIBUTED_DEBUG=DETAIL names the "
     "first one that differs"},
    {{"connectFullMesh failed", "", ""},
     "the workers cannot reach each other: open the ports between the nodes, or name the right "
     "interface with GLOO_SOCKET_IFNAME"},
    {{"monitoredBarrier", "", ""},
     "the rank it names did not come to the barrier: see where it stands (py-spy dump --pid PID)"},
    // https://github.com/pytorch/pytorch/issues/190489: a thread of gloo releases a tensor while
    // Python ends.
    {{"terminate called without an active exception", "", ""},
     "a thread was cut off as the program ended; torch with gloo may do so once all work is done: "
     "sys.stdout.flush() and os._exit(0) as the script's last lines avoid it"},
    {{"Expected to have finished reduction in the prior iteration", "", ""},
     "DistributedDataParallel(..., find_unused_parameters=True), or use every parameter in the "
     "loss"},
    {{"Number of processes must be defined", "", ""},
     "JAX reads no variable for it: num_processes=int(os.environ['JAX_NUM_PROCESSES']) and "
     "process_id=int(os.environ['JAX_PROCESS_ID']) in jax.distributed.initialize()"},
    {{"Invalid backend: 'hlaunch'", "Unknown c10d backend type HLAUNCH",
      "Unknown backend type hlaunch"},
     "the torch {where} does not know hlaunch's back end: install the same torch on all nodes, 2.2 "
     "or newer, and before 2.5 `import hlaunch.torch` in the script"},
    // Data loaders.
    {{"out of shared memory", "killed by signal: Bus error", ""},
     "/dev/shm of {host} is full: more of it (podman, docker: --shm-size; Kubernetes: an emptyDir "
     "of medium Memory), or fewer data loader workers"},
    {{"killed by signal: Killed", "", ""},
     "a data loader was killed, mostly for lack of memory: fewer num_workers, or more memory on "
     "{host} (dmesg tells)"},
    {{"DataLoader worker", "", ""}, "a data loader failed: num_workers=0 shows its own error"},
    // The host.
    {{"Too many open files", "", ""},
     "raise the limit on {host} before hlaunch starts (ulimit -n), or "
     "torch.multiprocessing.set_sharing_strategy('file_system')"},
    {{"No space left on device", "Disk quota exceeded", ""},
     "a file system of {host} is full: df -h and df -i tell which; TMPDIR and /dev/shm are among "
     "them"},
    {{"Cannot allocate memory", "MemoryError", "std::bad_alloc"},
     "{host} ran out of memory: a smaller batch, fewer workers, or a higher limit (ulimit -v, "
     "cgroup)"},
    {{"File too large", "", ""},
     "the file is larger than {host} allows (ulimit -f), or than its file system can have"},
    {{"ead-only file system", "", ""},
     "the path cannot be written on {host}: name another one, or mount it writable"},
    {{"ermission denied", "", ""},
     "the user who runs hlaunch on {host} may not do that: look at the path's owner and mode"},
    {{"an't start new thread", "Resource temporarily unavailable", ""},
     "{host} has no processes left for this user: ulimit -u, or the cgroup's pids.max"},
    // The network.
    {{"Name or service not known", "emporary failure in name resolution", "failed to resolve"},
     "{host} does not know that name: use an address, or add the name to DNS or /etc/hosts there"},
    {{"No route to host", "etwork is unreachable", ""},
     "{host} has no way to that address: look at its routes and firewall, or name the right "
     "interface (GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME)"},
    {{"ddress already in use", "EADDRINUSE", "Failed to add port to server"},
     "another program on {host} holds that port (ss -ltnp names it): end it, or ask for port 0"},
    // The program.
    {{"BdbQuit", "", ""},
     "a debugger found standard input at its end: of several workers local rank 0 alone reads it, "
     "and only with --stdin; or start one worker (--nproc-per-node 1)"},
    {{"ends in CR LF", "", ""},
     "it was edited on Windows: sed -i 's/\\r$//' on the script fixes it"},
    {{"file too short", "invalid ELF header", "wrong ELF class"},
     "that library {where} is corrupt or built for another architecture: install it anew"},
    {{"where PYTHONHOME or its", "", ""},
     "unset PYTHONHOME on {host}, or let it name the Python that is to run"},
    {{"cannot open shared object file", "", ""},
     "that library is missing {where}: install it there, or name its folder in LD_LIBRARY_PATH"},
    {{"undefined symbol", "", ""},
     "an extension {where} was built for another version of what it uses, mostly of torch: build "
     "or "
     "install it anew"},
    {{"ModuleNotFoundError", "ImportError", "No module named "},
     "it cannot be imported {where}: install it there for the Python that ran, or name "
     "another one with PYTHON_EXEC"},
    {{"SyntaxError", "IndentationError", "TabError"},
     "the script cannot be read by the Python that ran {where}: fix it, or name a newer Python "
     "with PYTHON_EXEC"},
    {{"can't open file", "FileNotFoundError", "No such file or directory"},
     "it is missing {where}: every node needs it under the same path"},
    {{"RecursionError", "stack overflow", ""},
     "it calls itself without end; sys.setrecursionlimit only delays that"},
};

constexpr absl::string_view kLate =
    "see where {awaited} stands (py-spy dump --pid PID), or allow longer with "
    "init_process_group(timeout=...)";

// These rows count only if no row of kRows fits the worker's own words.
constexpr Row kWaited[] = {
    {{"Timed out waiting", "Application timeout caused pair closure", ""}, kLate},
    // The store's word in torch 1.x, whose ranks wait in vain for those of a newer one.
    {{"Socket Timeout", "", ""},
     "see where {awaited} stands (py-spy dump --pid PID), and whether all hosts have the same "
     "torch"},
    {{"waiting for clients", "", ""},
     "not all workers came to the store: see where {awaited} stands"},
    {{"has not come to group", "", ""},
     "fewer ranks came than the script waits for: leave world_size out of init_process_group, or "
     "start so many"},
    {{"onnection refused", "", ""},
     "nobody serves that port: its server has ended or was never started, or a firewall refuses"},
    {{"onnection reset by peer", "Connection closed by peer", "roken pipe"},
     "another worker was gone: see how {awaited} ended; it may have left before the others were "
     "done"},
};

constexpr absl::string_view kTwoFirstRanks =
    "several processes of this program are rank 0; one that starts its ranks itself, as "
    "Lightning's "
    "ddp_spawn does, is to have none: add --per-node";
constexpr absl::string_view kOutOfMemory =
    "a smaller batch, fewer data loaders or workers on {host}, or a higher limit (podman, docker: "
    "--memory; Slurm: --mem; systemd: MemoryMax)";

constexpr absl::string_view kExitedEarly =
    "look for a return or sys.exit() that not all ranks reach, or data of unequal length (torch: "
    "`with model.join()`)";

constexpr absl::string_view kStalled =
    "see what it did after its last heartbeat; if it was only slow, a longer "
    "--heartbeat-timeout, or hlaunch.heartbeat(timeout=S) before what takes long";

constexpr absl::string_view kHangs =
    "see where it stands and why; if it was only slow, a longer --hang-timeout, or --hang-action "
    "warn";

constexpr absl::string_view kWrote =
    "read the lines before it; --watch-log 'warn:PATTERN' only names who writes such a line";

constexpr absl::string_view kSilent =
    "see what it did after that line; if it was only slow, more seconds for --watch-log-silence, "
    "or "
    "--stall-action warn";

constexpr absl::string_view kWarned =
    "look first at what was found before the round; where large messages do not pass, compare the "
    "MTU of the nodes' interfaces (ip link) with what passes between them (ping -M do "
    "-s "
    "1472 HOST), and lower it on all nodes, or let ICMP pass";

struct SignalRow {
  int signal;
  absl::string_view advice;
};
constexpr SignalRow kSignals[] = {
    {SIGKILL,
     "look for who ends processes on {host}: a scheduler's limit, the hard limit of CPU time "
     "(ulimit -Ht), systemd-oomd, a person"},
    {SIGSEGV,
     "PYTHONFAULTHANDLER=1 shows the Python line; often an extension that was built for "
     "another version of torch"},
    {SIGBUS, "often /dev/shm of {host} is full (df -h /dev/shm), or a mapped file was cut"},
    {SIGILL, "the program uses instructions that the CPU of {host} lacks: build it for that CPU"},
    {SIGFPE, "PYTHONFAULTHANDLER=1 shows the Python line"},
    {SIGXCPU, "it used more CPU time than {host} allows: ulimit -t there"},
    {SIGXFSZ, "it wrote a larger file than {host} allows: ulimit -f there"},
    {SIGTERM, "hlaunch did not send it: look for who ends processes on {host}"},
    {SIGABRT,
     "the program ended itself (abort); the lines above say why, or PYTHONFAULTHANDLER=1 "
     "shows the Python line"},
};

bool Fits(const Row& row, absl::string_view text) {
  return std::any_of(row.words.begin(), row.words.end(), [&](absl::string_view word) {
    return !word.empty() && absl::StrContains(text, word);
  });
}

template <size_t n>
absl::string_view Find(const Row (&rows)[n], absl::string_view text) {
  const auto* row = std::find_if(rows, rows + n, [&](const Row& r) { return Fits(r, text); });
  return row == rows + n ? "" : row->advice;
}

absl::string_view AdviceOnSignal(int signal) {
  for (const SignalRow& row : kSignals) {
    if (row.signal == signal) return row.advice;
  }
  return "";
}

// Returns whether `text`, which says that a port is in use, has a line of code that names
// MASTER_PORT.
bool ComesFromMasterPort(absl::string_view text) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StartsWith(line, "    ") && absl::StrContains(line, "MASTER_PORT")) return true;
  }
  return false;
}

// Returns whether `text` says that `port` is in use, in the words of torch, the C library or gRPC.
bool SaysPortInUse(absl::string_view text, uint16_t port) {
  const std::string colon = absl::StrCat(":", port), pair = absl::StrCat("', ", port),
                    words = absl::StrCat("port: ", port);
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const bool in_use = absl::StrContains(line, "ddress already in use") ||
                        absl::StrContains(line, "EADDRINUSE") ||
                        absl::StrContains(line, "Failed to add port to server");
    if (!in_use) continue;
    if (ComesFromMasterPort(text)) return true;
    for (const std::string& name : {colon, pair, words}) {
      const size_t at = line.find(name);
      const size_t end = at + name.size();
      if (at != line.npos && (end == line.size() || !absl::ascii_isdigit(line[end]))) return true;
    }
  }
  return false;
}

// Returns whether torch, as rank 0, could not serve at MASTER_PORT because another rank 0 did. No
// other program can be the cause: a port that hlaunch leaves to the program is reserved for it.
bool HasTwoFirstRanks(absl::string_view text) {
  return absl::StrContains(text, "_env_rendezvous_handler") &&
         (absl::StrContains(text, "ddress already in use") ||
          absl::StrContains(text, "EADDRINUSE"));
}

// Returns "on node1", or all hosts whose workers ended with the same words.
std::string Where(const Outcome& outcome) {
  const std::string exception = OwnWords(outcome.failures.front());
  std::set<std::string> hosts;
  for (const WorkerFailure& failure : outcome.failures) {
    if (OwnWords(failure) == exception) hosts.insert(PrintableLine(failure.host));
  }
  if (hosts.size() > kHostsNamed) return absl::StrCat("on ", hosts.size(), " hosts");
  return absl::StrCat("on ", absl::StrJoin(hosts, " and "));
}

// Returns the keys that a wait of the store did not get: "wait timeout after 1000ms, keys: /a, /b".
std::string MissingKeys(absl::string_view text) {
  const size_t at = text.find("wait timeout after");
  if (at == text.npos) return "";
  absl::string_view rest = text.substr(at);
  rest = rest.substr(0, rest.find('\n'));
  const size_t keys = rest.find("keys: ");
  return keys == rest.npos ? "" : PrintableLine(rest.substr(keys + 6));
}

std::string Awaited(const Outcome& outcome) {
  if (outcome.awaited.empty()) return "the others";
  std::vector<std::string> names;
  for (const WorkerPlace& place : outcome.awaited) {
    names.push_back(absl::StrCat("rank ", place.rank, " on ", PrintableLine(place.host)));
  }
  return absl::StrJoin(names, ", ");
}

// How parsers of command lines say that they do not know an option: argparse, click, absl, the
// parser of transformers, getopt.
constexpr absl::string_view kUnknownOption[] = {
    "unrecognized arguments: ", "No such option: ", "Unknown command line flag '",
    "not used by the HfArgumentParser: ", "unrecognized option '"};

// Returns the options of hlaunch that a script was given and did not know, as it names them.
std::vector<std::string> OptionsForHlaunch(absl::string_view text) {
  std::vector<std::string> options;
  for (const absl::string_view sign : kUnknownOption) {
    const size_t at = text.find(sign);
    if (at == text.npos) continue;
    const absl::string_view rest = text.substr(at + sign.size());
    const absl::string_view line = rest.substr(0, rest.find('\n'));
    for (absl::string_view word :
         absl::StrSplit(line, absl::ByAnyChar(" ,'[]"), absl::SkipEmpty())) {
      word = word.substr(0, word.find_first_of("=."));
      const bool is_long = absl::StartsWith(word, "--");
      const std::string name = is_long ? std::string(word) : absl::StrCat("--", word);
      if (!is_long && !absl::StartsWith(sign, "Unknown command line")) continue;
      if (FindOption(name) != nullptr) options.push_back(PrintableLine(name));
    }
    break;
  }
  return options;
}

std::string AdviceOnOptions(const std::vector<std::string>& options) {
  const bool one = options.size() == 1;
  return absl::StrCat(absl::StrJoin(options, " and "), one ? " is an option" : " are options",
                      " of hlaunch too, and all words after the script are the script's own: for "
                      "hlaunch, write ",
                      one ? "it" : "them", " before the script");
}

// Returns what is to be done about what ended the worker or was found out before.
absl::string_view AdviceOnKind(FailureKind kind) {
  switch (kind) {
    case FailureKind::kStalled:
    case FailureKind::kStalledWaiting:
      return kStalled;
    case FailureKind::kHangs:
      return kHangs;
    case FailureKind::kSilent:
      return kSilent;
    case FailureKind::kWroteLine:
      return kWrote;
    default:
      return "";
  }
}

std::string ForWorker(const Outcome& outcome, uint16_t store_port) {
  const WorkerFailure& first = outcome.failures.front();
  if (first.pid == 0) return "";  // The failure's message is enough.
  const std::string exception = OwnWords(first);
  const std::string text = absl::StrCat(first.message, "\n", first.traceback, "\n", first.log_tail);
  if (first.kind == FailureKind::kWarnedBefore) return std::string(kWarned);
  if (store_port != 0 && SaysPortInUse(text, store_port)) {
    return absl::StrCat("port ", store_port,
                        " is MASTER_PORT, where hlaunch serves the store; this program wants to "
                        "serve there itself: add --master-store=worker");
  }
  if (store_port == 0 && HasTwoFirstRanks(text)) return std::string(kTwoFirstRanks);
  if (!outcome.awaited.empty() && outcome.awaited.front().exited) {
    return std::string(kExitedEarly);
  }
  if (const std::vector<std::string> options = OptionsForHlaunch(text);
      !options.empty() && first.signal == 0) {
    return AdviceOnOptions(options);
  }
  absl::string_view advice = first.out_of_memory ? kOutOfMemory : Find(kRows, exception);
  if (const std::string keys = MissingKeys(exception); advice.empty() && !keys.empty()) {
    return absl::StrCat(
        "nobody set ", keys, " in the store: ",
        outcome.awaited.empty()
            ? absl::StrCat("fewer ranks came than the script waits for, or ",
                           absl::StrContains(keys, "default_pg")
                               ? "not all hosts have the same torch"
                               : "it is a key of its own")
            : absl::StrCat("see where ", Awaited(outcome), " stands (py-spy dump --pid PID)"));
  }
  if (!outcome.awaited.empty() && !outcome.awaited.front().did.empty()) {
    // Whoever has not come yet may still do something else.
    const bool late =
        KindOf(first) == CauseKind::kTimedOut && outcome.awaited.front().rank != first.rank;
    if (!late) return "";
    advice = kLate;
  }
  if (advice.empty()) advice = Find(kWaited, exception);
  if (advice.empty()) advice = AdviceOnKind(first.kind);
  if (advice.empty() && first.signal != SIGABRT) advice = AdviceOnSignal(first.signal);
  if (advice.empty() && first.signal == 0 && exception.empty()) {
    advice = Find(kRows, text);
    if (advice.empty()) advice = Find(kWaited, text);
  }
  if (advice.empty() && first.signal == SIGABRT) {
    advice = Find(kRows, text);
    if (advice.empty() && exception.empty()) advice = AdviceOnSignal(SIGABRT);
  }
  return absl::StrCat(absl::StrReplaceAll(advice, {{"{host}", PrintableLine(first.host)},
                                                   {"{where}", Where(outcome)},
                                                   {"{awaited}", Awaited(outcome)}}),
                      first.kind == FailureKind::kImportFailed && !advice.empty()
                          ? absl::StrCat("; ", PrintableLine(first.evidence))
                          : "");
}

std::string ForJob(const Outcome& outcome) {
  if (outcome.warned) return std::string(kWarned);
  switch (outcome.exit_code) {
    case kExitBadEndpoint:
      return "check the host and port that were named, and that its node is started";
    case kExitPortInUse:
      return "name another port on all nodes; ss -ltnp names the program that holds this one";
    case kExitRefused:
      return "all nodes need the same --rdzv-id, --nnodes and token";
    case kExitJoinTimeout:
      if (outcome.refused) {
        return "no node need be started: fix what the refused one was refused for";
      }
      return "start the missing nodes, or give them longer with --join-timeout";
    case kExitRendezvousLost:
      return "look at that host first, then at the network to it; --loss-limit sets the time-out";
    case kExitNodeLost:
      return "look at that host first, then at the network; --max-restarts lets the job try again";
    case kExitInternal:
      return "this is a bug in hlaunch; please report it with the lines above";
    default:
      return "";
  }
}

}  // namespace

std::string AdviceFor(const Outcome& outcome, uint16_t store_port) {
  return outcome.worker_failed ? ForWorker(outcome, store_port) : ForJob(outcome);
}

}  // namespace hlaunch
