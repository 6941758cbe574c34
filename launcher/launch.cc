// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/launch.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/event_hook/event_hook.h"
#include "agent/worker/keeper.h"
#include "launcher/cluster/node_tasks.h"
#include "launcher/cluster/place.h"
#include "launcher/command/check_node.h"
#include "launcher/command/dry_run.h"
#include "launcher/command/install_programs.h"
#include "launcher/command/make_token.h"
#include "launcher/command/show_devices.h"
#include "launcher/detached/detach_job.h"
#include "launcher/detached/detached_commands.h"
#include "launcher/dialect/translate_mpirun.h"
#include "launcher/hosts/host_list.h"
#include "launcher/job/job_spec.h"
#include "launcher/job/make_job_spec.h"
#include "launcher/job/node_binding.h"
#include "launcher/join/membership_options.h"
#include "launcher/node/join_again.h"
#include "launcher/node/run_node.h"
#include "launcher/node/tell_unable.h"
#include "launcher/options/command_table.h"
#include "launcher/options/options.h"
#include "launcher/options/parse_options.h"
#include "launcher/own_cluster/cluster_commands.h"
#include "launcher/own_cluster/submit_job.h"
#include "launcher/remote/agent_stub.h"
#include "launcher/remote/hold_part.h"
#include "launcher/report/doctor.h"
#include "launcher/tasks/gather_tasks.h"
#include "launcher/tasks/run_task.h"
#include "launcher/tasks/stand_in.h"
#include "launcher/words/environment.h"
#include "launcher/words/exit_codes.h"
#include "launcher/words/parse_int.h"
#include "launcher/words/printable.h"
#include "launcher/words/programs.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/contract/env_contract.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/listening/find_host.h"
#include "rendezvous/listening/local_addresses.h"
#include "rendezvous/trust/openssl_modules.h"

namespace hlaunch {
namespace {

// Becomes another program of hlaunch's. Returns only if it cannot, with why not.
std::string ExecProgram(const char* program, char** argv) {
  const auto places = PlacesOfProgram(PathOfThisProgram(), program);
  int first_error = 0;
  for (const std::string& place : places) {
    ::execv(place.c_str(), argv);
    if (first_error == 0) first_error = errno;
  }
  return absl::StrCat("needs the program ", places[0], ": ", std::strerror(first_error),
                      "; install it there or as ", places[1]);
}

std::string ExecAgentProgram(char** argv) { return ExecProgram("hlaunch-agent", argv); }

int BecomeAgentProgram(char** argv, const std::string& token, KeeperLink keeper,
                       const EventHook& hook) {
  std::string link = keeper.ForExec(), events = hook.ForExec();
  ::putenv(link.data());
  if (hook.any()) ::putenv(events.data());
  if (!token.empty()) ::setenv(kEnvToken, token.c_str(), 1);
  LogError(absl::StrCat("a job with several nodes ", ExecAgentProgram(argv)));
  return kExitNotFound;
}

// Begins this node's part anew, with nothing left of the part that ended: this program once more,
// with the same words and under the same keeper. Returns only if it cannot.
int JoinAfresh(char** argv, const NodeEnd& end, const std::string& token, KeeperLink keeper,
               const EventHook& hook) {
  std::string link = keeper.ForExec(), events = hook.ForExec();
  ::putenv(link.data());
  if (hook.any()) ::putenv(events.data());
  ::setenv(kEnvRestartsUsed, absl::StrCat(*end.restarts_used).c_str(), 1);
  if (!token.empty()) ::setenv(kEnvToken, token.c_str(), 1);
  rlimit limit = {};
  if (end.descriptors_before && ::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = *end.descriptors_before;  // Which workers are to have again.
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  ::execv("/proc/self/exe", argv);
  LogError(absl::StrCat("cannot join again: ", PathOfThisProgram(), ": ", std::strerror(errno)));
  return end.exit_code;
}

// A job that cannot start here: says why, to the person and to the job's other nodes, where there
// are any. Returns what to exit with.
int GiveUp(const Options& options, const Environment& environment, const absl::Status& why,
           char** argv, const ConnectFn& connect) {
  const int exit_code = ExitCodeOf(FailedStep::kPrepare, why);
  const absl::StatusOr<JobSpec> meeting = MakeMeeting(options, environment, RealHostProbes());
  const bool others =
      meeting.ok() && NeedsGrpc(*meeting) && !options.instead.dry_run && !options.instead.print_env;
  if (others && !connect) {  // That program says the same, and can tell others.
    const std::string token = environment.Get(kEnvToken);
    if (!token.empty()) ::setenv(kEnvToken, token.c_str(), 1);
    ExecAgentProgram(argv);
  }
  if (!why.message().empty()) LogError(why.message());
  if (others) TellUnable(*meeting, options, connect, std::string(why.message()), exit_code);
  return exit_code;
}

// Whether this is a task of its node that only runs a worker, and says nothing of the job.
bool IsOtherTask(const Options& options, const Surroundings& surroundings) {
  if (options.tasks) return options.tasks->local > 0;
  const std::optional<NodeTasks> tasks = FindPlace(surroundings, "auto").tasks;
  return tasks && tasks->local > 0;
}

using ReadOptionsFn =
    std::function<absl::StatusOr<Options>(int argc, char** argv, const Surroundings& surroundings)>;

absl::StatusOr<Options> ReadJobOptions(int argc, char** argv, const Surroundings& surroundings) {
  return ParseOptions(argc, argv, surroundings);
}

// Reads the options of a job whose workers do nothing.
absl::StatusOr<Options> ReadDoctorOptions(int argc, char** argv, const Surroundings& surroundings) {
  const DoctorWords words = ReadDoctorWords(argc, argv);
  if (words.help) {
    Options options;
    options.text_to_print = DoctorHelp();
    return options;
  }
  std::vector<const char*> job;
  for (const std::string& word : words.job) job.push_back(word.c_str());
  const std::optional<NodeTasks> tasks = FindPlace(surroundings, "auto").tasks;
  if (tasks && tasks->local > 0) {  // The node's first task checks it.
    Options options;
    options.text_to_print = "";
    return options;
  }
  Surroundings alone = surroundings;
  alone.alone = true;  // It checks the nodes that it is started on.
  HLAUNCH_ASSIGN_OR_RETURN(Options options,
                           ParseOptions(static_cast<int>(job.size()), job.data(), alone));
  if (options.script.command != std::vector<std::string>{kDoctorProgram}) {
    return absl::InvalidArgumentError(
        absl::StrCat("hlaunch doctor takes the options of a job and no script; to start a script ",
                     "of that name, write hlaunch ./doctor"));
  }
  options.instead.doctor = true;
  options.instead.doctor_json = words.json;
  return options;
}

// A job whose nodes are other hosts: this is its terminal's end.
int RunOnHosts(char** argv, const Options& options, const Environment& environment,
               const ConductFn& conduct) {
  if (options.instead.doctor) {
    LogError("hlaunch doctor starts no other hosts: run it on each, with --nnodes");
    return kExitUsage;
  }
  const auto run = [&](KeeperLink keeper) {
    if (conduct) return conduct(options, environment, std::move(keeper));
    return BecomeAgentProgram(argv, environment.Get(kEnvToken), std::move(keeper), EventHook());
  };
  if (absl::StatusOr<KeeperLink> keeper = KeeperLink::FromEnv(); keeper.ok()) {
    return run(std::move(keeper).value());
  }
  return RunUnderKeeper(run, options.worker.signals_to_handle);
}

// Has the job's events go to `receiver`, if there is one.
EventHook BeginHook(const EventReceiver& receiver) {
  if (receiver.none()) return {};
  absl::StatusOr<EventHook> hook = EventHook::Begin(receiver);
  if (hook.ok()) return *std::move(hook);
  LogWarning(absl::StrCat("--on-event: ", hook.status().message(), "; the job goes on without"));
  return {};
}

// This node's part of the job; `tasks` is what this process has gathered for it.
int RunOptions(char** argv, const Options& options, const Environment& environment,
               GatheredTasks& tasks, const ConnectFn& connect) {
  const std::string token = environment.Get(kEnvToken);  // For the program that this becomes.
  absl::StatusOr<JobSpec> spec = MakeJobSpec(options, environment, RealHostProbes());
  if (!spec.ok()) {
    if (options.tasks) {
      tasks.SayEnd(ExitCodeOf(FailedStep::kPrepare, spec.status()));
      ::setenv(kEnvTasksGone, "", 1);
    }
    return GiveUp(options, environment, spec.status(), argv, connect);
  }
  if (options.instead.dry_run || options.instead.print_env) {
    BindWorkers(options, *spec);
    return PrintInsteadOfJob(options, *spec);
  }
  if (options.instead.doctor && spec->policy.max_nodes == 1) {
    CheckPlan plan;
    plan.full = true;
    plan.sysroot = options.sysroot;
    return CheckThisNode(plan, options.instead.doctor_json);
  }
  if (spec->policy.max_nodes > 1) SetLogName(HostName());  // Of the keeper's lines, too.
  // Nor do core dumps and the user's other processes get at the secret.
  if (!spec->token.empty() || !spec->certificates.none()) ::prctl(PR_SET_DUMPABLE, 0);
  // `hlaunch` has made the keeper before it became the agent program, and whom events go to.
  absl::StatusOr<KeeperLink> kept = KeeperLink::FromEnv();
  EventHook hook = kept.ok() ? EventHook::FromEnv() : BeginHook(options.output.on_event);
  const auto run = [&](KeeperLink keeper) {
    tasks.Leave();  // They are the keeper's.
    if (NeedsGrpc(*spec) && !connect) {
      return BecomeAgentProgram(argv, token, std::move(keeper), hook);
    }
    BindWorkers(options, *spec);
    int used = 0;
    ParseInt(environment.Get(kEnvRestartsUsed), 0, INT_MAX, &used);
    const NodeEnd end = RunNode(options, *spec, keeper, hook, connect, used);
    return end.restarts_used ? JoinAfresh(argv, end, token, std::move(keeper), hook)
                             : end.exit_code;
  };
  if (kept.ok()) return run(std::move(kept).value());
  return RunUnderKeeper(run, options.worker.signals_to_handle, tasks.links());
}

// The same where this process is one of several tasks of this node.
int RunAsTask(char** argv, Options& options, const Environment& environment,
              const ConnectFn& connect) {
  constexpr Duration kPatience = std::chrono::seconds(30);
  constexpr Duration kLonger = std::chrono::seconds(2);  // Task 0 is the one that tells.
  const NodeTasks tasks = *options.tasks;
  const Duration patience = std::min<Duration>(kPatience, options.policy.join_timeout);
  const bool runs_none = options.instead.dry_run || options.instead.print_env;
  if (tasks.local > 0 && runs_none) return kExitOk;
  if (tasks.local > 0) {
    if (!environment.Get(kEnvToken).empty()) ::prctl(PR_SET_DUMPABLE, 0);
    return RunTask(tasks, environment, patience + kLonger);
  }
  absl::StatusOr<GatheredTasks> gathered = GatheredTasks();
  // The program of one part after another: `hlaunch` has gathered them, or has failed to.
  const std::string why_gone = environment.Get(kEnvTasksGone);
  const bool is_first = std::getenv(kEnvTasksGone) == nullptr && !std::getenv(kEnvKeeperFd);
  if (!why_gone.empty()) gathered = absl::InvalidArgumentError(why_gone);
  if (!runs_none && is_first) gathered = GatheredTasks::Gather(tasks, environment, patience);
  if (!gathered.ok()) {
    ::setenv(kEnvTasksGone, std::string(gathered.status().message()).c_str(), 1);
    return GiveUp(options, environment, gathered.status(), argv, connect);
  }
  std::string for_agent =
      is_first ? gathered->ForAgent() : absl::StrCat(kEnvTasks, "=", environment.Get(kEnvTasks));
  ::putenv(for_agent.data());
  UseTasks(tasks, std::getenv(kEnvTasks), options.worker);
  const int exit_code = RunOptions(argv, options, environment, *gathered, connect);
  gathered->SayEnd(exit_code);
  return exit_code;
}

int Detach(int argc, char** argv, const Options& options, const Environment& environment,
           const Surroundings& surroundings) {
  const ClusterPlace place = FindPlace(surroundings, options.cluster, options.cluster_systems);
  if (const absl::Status fit = CheckDetach(options, place); !fit.ok()) {
    LogError(fit.message());
    return kExitUsage;
  }
  WipeFromEnvironment(kEnvToken);
  SetLogLevel(options.output.log_level);
  return DetachJob(argc, argv, options, environment);
}

// A job from its command line to the exit code; `read` reads its options.
int RunJob(int argc, char** argv, const ReadOptionsFn& read, const ConnectFn& connect,
           const ConductFn& conduct) {
  // From the first line on nothing that the agent handles can end this process; it is delivered
  // once there is somebody to take it.
  BlockAgentSignals();
  const Environment environment = Environment::OfThisProcess();
  const Surroundings surroundings = SurroundingsOfThisProcess(environment);
  absl::StatusOr<Options> options = read(argc, argv, surroundings);
  if (!options.ok()) {
    const Options right = ParseWhatIsRight(argc, argv, surroundings);
    if (IsOtherTask(right, surroundings)) return kExitUsage;
    return GiveUp(right, environment, options.status(), argv, connect);
  }
  if (options->text_to_print) {
    std::fputs(options->text_to_print->c_str(), stdout);
    return std::fflush(stdout) == 0 ? kExitOk : kExitInternal;
  }
  if (options->instead.installs()) return InstallPrograms(options->instead);
  // `hlaunch-agent` is a part of a job that starts here.
  if (!connect) {
    const std::optional<int> ended = RunOnCluster(*options, environment, surroundings);
    if (ended.has_value()) return *ended;
  }
  if (options->detach && options->detached_directory.empty()) {
    return Detach(argc, argv, *options, environment, surroundings);
  }
  BlockAgentSignals(options->worker.signals_to_handle);
  WipeFromEnvironment(kEnvToken);
  SetLogLevel(options->output.log_level);
  if (options->output.json) SetLogJson();
  if (options->hosts.any()) return RunOnHosts(argv, *options, environment, conduct);
  if (options->tasks) return RunAsTask(argv, *options, environment, connect);
  GatheredTasks none;
  return RunOptions(argv, *options, environment, none, connect);
}

// A job whose command line may hold mpirun's words; `as_mpirun`: it has that name.
int RunTranslated(int argc, char** argv, bool as_mpirun, const ConnectFn& connect,
                  const ConductFn& conduct) {
  const std::vector<std::string> typed(argv + 1, argv + argc);
  absl::StatusOr<TranslatedLine> line =
      as_mpirun ? TranslateMpirun(typed, Environment::OfThisProcess(), ReadTextFile)
                : TranslateWithin(typed);
  if (!line.ok()) {  // Other nodes may have to hear it.
    const absl::Status why = line.status();
    const auto fail = [&](int, char**, const Surroundings&) -> absl::StatusOr<Options> {
      return why;
    };
    return RunJob(argc, argv, fail, connect, conduct);
  }
  if (line->text_to_print) {
    std::fputs(line->text_to_print->c_str(), stdout);
    return std::fflush(stdout) == 0 ? kExitOk : kExitInternal;
  }
  for (const std::string& remark : line->remarks) LogWarning(remark);
  if (!as_mpirun) line->words[0] = argv[0];
  std::vector<char*> words;
  for (std::string& word : line->words) words.push_back(word.data());
  words.push_back(nullptr);
  return RunJob(static_cast<int>(line->words.size()), words.data(), ReadJobOptions, connect,
                conduct);
}

// `hlaunch help [COMMAND]` and `hlaunch version`, which mean what `option` does. `most` is the
// greatest argc.
int RunAsOption(int argc, char** argv, char* option, int most, const ConnectFn& connect,
                const std::vector<ProgramCommand>& agent_commands) {
  const char* const named[] = {argv[0], argc == 3 ? argv[2] : "help"};
  if (argc > most || FindCommand(2, named) == nullptr) {  // It might be a script, and be started.
    LogError(absl::StrCat("hlaunch ", argv[1], " takes no word like ",
                          PrintableLine(argv[argc - 1]), "; see hlaunch --help"));
    return kExitUsage;
  }
  std::vector<char*> words = {argv[0], option, nullptr};
  if (argc == 3) words.insert(words.begin() + 1, argv[2]);
  return Launch(argc, words.data(), connect, agent_commands);
}

// `hlaunch-agent` with these words, the program's name first. Returns only if it cannot.
int BecomeAgentWith(const std::vector<std::string>& words) {
  std::vector<std::string> copies = words;
  std::vector<char*> pointers;
  for (std::string& word : copies) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  LogError(absl::StrCat("hlaunch ", words[1], " ", ExecAgentProgram(pointers.data())));
  return kExitNotFound;
}

// A token for one job needs OpenSSL, which only the agent's program has.
int RunToken(int argc, char** argv, const std::vector<ProgramCommand>& agent_commands) {
  const absl::StatusOr<TokenOptions> options = ParseTokenOptions(argc, argv);
  if (!options.ok() || !options->derives()) return MakeToken(argc, argv);
  for (const ProgramCommand& command : agent_commands) {
    if (absl::string_view(command.word) == argv[1]) return command.run(argc, argv);
  }
  LogError(absl::StrCat("hlaunch token ", ExecAgentProgram(argv)));
  return kExitNotFound;
}

// The words of a cluster's administrator need OpenSSL, which hlaunchd has; their help does not.
int RunCluster(int argc, char** argv) {
  const absl::StatusOr<MembershipOptions> options = ParseMembershipOptions(argc, argv);
  if (!options.ok()) {
    LogError(options.status().message());
    return kExitUsage;
  }
  if (options->text_to_print) {
    std::fputs(options->text_to_print->c_str(), stdout);
    return std::fflush(stdout) == 0 ? kExitOk : kExitInternal;
  }
  LogError(absl::StrCat("hlaunch cluster ", ExecProgram("hlaunchd", argv)));
  return kExitNotFound;
}

// What MPICH starts from PATH, as `mpiexec -pmi_args PORT …`, where a program without a launcher
// calls MPI_Comm_spawn or asks for the size of its universe.
int RefuseSingletonSpawn() {
  LogError(
      "an MPI program that was started without a launcher asked for one, to start further "
      "programs, and hlaunch starts none; start it with hlaunch or with MPICH's mpiexec");
  return 1;
}

}  // namespace

int Launch(int argc, char** argv, const ConnectFn& connect,
           const std::vector<ProgramCommand>& agent_commands, const ConductFn& conduct) {
  if (argc > 1 && absl::string_view(argv[1]) == "-pmi_args") return RefuseSingletonSpawn();
  ChooseNameServices();
  DoWithoutOpenSslModules();
  const bool as_mpirun = IsMpirunName(argv[0]);
  const CommandRow* const row = as_mpirun ? nullptr : FindCommand(argc, argv);
  if (row == nullptr && ProgramName(argv[0]) == "torchrun") {
    return RunJob(argc, argv, ReadJobOptions, connect, conduct);
  }
  if (row == nullptr) return RunTranslated(argc, argv, as_mpirun, connect, conduct);
  static char help[] = "--help", version[] = "--version";
  std::vector<ProgramCommand> commands = {
      {"devices", ShowDevices},
      {"check", CheckNode},
      {"attach", AttachJob},
      {"logs", ShowLogs},
      {"stop", StopJob},
      {"cluster", RunCluster},
      {"kill", KillJob},
      {"ps", ShowClusterJobs},
      {"nodes", ShowClusterHosts},
      {"top", [](int count, char** words) { return ShowTop(count, words, BecomeAgentWith); }},
      {"agent", RunAgentStub},
      {"hold", RunHold},
      {kStandInWord, RunStandIn},
      {"token", [&](int, char**) { return RunToken(argc, argv, agent_commands); }},
      {"doctor",
       [&](int, char**) { return RunJob(argc, argv, ReadDoctorOptions, connect, conduct); }},
      {"help",
       [&](int, char**) { return RunAsOption(argc, argv, help, 3, connect, agent_commands); }},
      {"version",
       [&](int, char**) { return RunAsOption(argc, argv, version, 2, connect, agent_commands); }}};
  if (!connect) {
    const std::optional<int> done = RunForCluster(row->word, argc, argv, BecomeAgentWith);
    if (done.has_value()) return *done;
  }
  commands.insert(commands.end(), agent_commands.begin(), agent_commands.end());
  for (const ProgramCommand& command : commands) {
    if (absl::string_view(command.word) == row->word) return command.run(argc, argv);
  }
  HLAUNCH_CHECK(row->program == CommandProgram::kAgent && !connect);
  // That program does it, and this process is done.
  LogError(absl::StrCat("hlaunch ", row->word, " ", ExecAgentProgram(argv)));
  return kExitNotFound;
}

}  // namespace hlaunch
