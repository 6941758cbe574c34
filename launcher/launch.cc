// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/launch.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/events/event_hook.h"
#include "agent/mpi/serve/pmix_words.h"
#include "agent/workers/process/lack.h"
#include "agent/workers/worker/keeper.h"
#include "launcher/cli/hosts/host_list.h"
#include "launcher/cli/mpirun/translate_deepspeed.h"
#include "launcher/cli/mpirun/translate_mpirun.h"
#include "launcher/cli/options/command_table.h"
#include "launcher/cli/options/options.h"
#include "launcher/cli/options/parse_options.h"
#include "launcher/cluster/commands/cluster_commands.h"
#include "launcher/cluster/commands/submit_job.h"
#include "launcher/cluster/membership/membership_options.h"
#include "launcher/command/adopt/adopt.h"
#include "launcher/command/check_node.h"
#include "launcher/command/dry_run.h"
#include "launcher/command/install_programs.h"
#include "launcher/command/make_token.h"
#include "launcher/command/own_jobs/own_job_commands.h"
#include "launcher/command/show_devices.h"
#include "launcher/environment/mpi/carried_pmix.h"
#include "launcher/environment/python/files.h"
#include "launcher/environment/python/find_python.h"
#include "launcher/environment/scheduler/node_tasks.h"
#include "launcher/environment/scheduler/place.h"
#include "launcher/environment/tasks/gather_tasks.h"
#include "launcher/environment/tasks/run_task.h"
#include "launcher/environment/tasks/stand_in.h"
#include "launcher/job/spec/job_spec.h"
#include "launcher/job/spec/make_job_spec.h"
#include "launcher/job/spec/node_binding.h"
#include "launcher/node/join_again.h"
#include "launcher/node/run_node.h"
#include "launcher/node/tell_unable.h"
#include "launcher/remote/detached/detach_job.h"
#include "launcher/remote/detached/detached_commands.h"
#include "launcher/remote/ssh/agent_stub.h"
#include "launcher/remote/ssh/hold_part.h"
#include "launcher/report/job/doctor.h"
#include "launcher/text/environment.h"
#include "launcher/text/exit_codes.h"
#include "launcher/text/parse_int.h"
#include "launcher/text/printable.h"
#include "launcher/text/programs.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/contract/env_contract.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/net/socket/find_host.h"
#include "rendezvous/net/socket/local_addresses.h"
#include "rendezvous/net/trust/openssl_modules.h"

namespace hlaunch {
namespace {

// Execs another program of hlaunch. Returns only if that fails, with the reason.
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

// Returns whether the other program is installed: a job of one node is possible without it.
bool HasAgentProgram() {
  const auto places = PlacesOfProgram(PathOfThisProgram(), "hlaunch-agent");
  return std::any_of(places.begin(), places.end(),
                     [](const std::string& place) { return ::access(place.c_str(), X_OK) == 0; });
}

int BecomeAgentProgram(char** argv, const std::string& token, KeeperLink keeper,
                       const EventHook& hook) {
  std::string link = keeper.ForExec(), events = hook.ForExec();
  ::putenv(link.data());
  if (hook.any()) ::putenv(events.data());
  if (!token.empty()) ::setenv(kEnvToken, token.c_str(), 1);
  LogError(absl::StrCat("a job with several nodes ", ExecAgentProgram(argv)));
  return kExitNotFound;
}

// Begins this node's part again without any state of the part that ended: execs this program with
// the same command line, under the same keeper. Returns only if that fails.
int JoinAfresh(char** argv, const NodeEnd& end, const std::string& token, KeeperLink keeper,
               const EventHook& hook) {
  std::string link = keeper.ForExec(), events = hook.ForExec();
  ::putenv(link.data());
  if (hook.any()) ::putenv(events.data());
  ::setenv(kEnvRestartsUsed, absl::StrCat(*end.restarts_used).c_str(), 1);
  if (!token.empty()) ::setenv(kEnvToken, token.c_str(), 1);
  rlimit limit = {};
  if (end.descriptors_before && ::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = *end.descriptors_before;  // Workers get this limit again.
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  ::execv("/proc/self/exe", argv);
  LogError(absl::StrCat("cannot join again: ", PathOfThisProgram(), ": ", std::strerror(errno)));
  return end.exit_code;
}

// Tells the user, and the job's other nodes if there are any, why the job cannot start here.
// Returns the exit code.
int GiveUp(const Options& options, const Environment& environment, const absl::Status& why,
           char** argv, const ConnectFn& connect) {
  const int exit_code = ExitCodeOf(FailedStep::kPrepare, why);
  const absl::StatusOr<JobSpec> meeting = MakeMeeting(options, environment, RealHostProbes());
  const bool others =
      meeting.ok() && NeedsGrpc(*meeting) && !options.instead.dry_run && !options.instead.print_env;
  // That program prints the same error, and can also tell the other nodes.
  if (others && !connect) {
    const std::string token = environment.Get(kEnvToken);
    if (!token.empty()) ::setenv(kEnvToken, token.c_str(), 1);
    ExecAgentProgram(argv);
  }
  if (!why.message().empty()) LogError(why.message());
  if (others) TellUnable(*meeting, options, connect, std::string(why.message()), exit_code);
  return exit_code;
}

// Returns this process' place if it is a task of its node that only runs a worker and prints
// nothing about the job.
std::optional<NodeTasks> OtherTask(const Options& options, const Surroundings& surroundings) {
  const std::optional<NodeTasks> tasks =
      options.tasks ? options.tasks : FindPlace(surroundings, "auto").tasks;
  return tasks && tasks->local > 0 ? tasks : std::nullopt;
}

// Task 0 has the same command line and prints what is wrong with it, unless it is another program.
// So task 1 says it too if nobody has ended it a moment later. What is wrong with the tasks'
// places, an empty message here, task 0 of the whole job tells.
int RefuseInTask(const NodeTasks& task, const absl::Status& why) {
  if (task.local == 1 && !why.message().empty()) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    LogError(absl::StrCat("task 1 of ", task.owner, " on this node: ", why.message()));
  }
  return kExitUsage;
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
  if (tasks && tasks->local > 0) {  // The first task of the node checks the node.
    Options options;
    options.text_to_print = "";
    return options;
  }
  Surroundings alone = surroundings;
  alone.alone = true;  // One task checks its whole node.
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

// Runs a job on other hosts. This process stays at the terminal.
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

// Starts to send the job's events to `receiver`, if there is one.
EventHook BeginHook(const EventReceiver& receiver) {
  if (receiver.none()) return {};
  absl::StatusOr<EventHook> hook = EventHook::Begin(receiver);
  if (hook.ok()) return *std::move(hook);
  LogWarning(absl::StrCat("--on-event: ", hook.status().message(), "; the job goes on without"));
  return {};
}

// Runs this node's part of the job. `tasks` are the tasks that this process has gathered for it.
int RunOptions(char** argv, const Options& options, const Environment& environment,
               GatheredTasks& tasks, const ConnectFn& connect) {
  // For the program that this process may exec.
  const std::string token = environment.Get(kEnvToken);
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
  if (spec->policy.max_nodes > 1) SetLogName(HostName());  // The keeper's lines have it, too.
  // Keeps the secret out of core dumps and away from the user's other processes.
  if (!spec->token.empty() || !spec->certificates.none()) ::prctl(PR_SET_DUMPABLE, 0);
  // If `hlaunch` execed this program, it has already made the keeper and the event hook.
  absl::StatusOr<KeeperLink> kept = KeeperLink::FromEnv();
  EventHook hook = kept.ok() ? EventHook::FromEnv() : BeginHook(options.output.on_event);
  const auto run = [&](KeeperLink keeper) {
    tasks.Leave();  // The keeper has them now.
    const bool apart = HearsAnybody(options, *spec) && HasAgentProgram();
    if (!connect && (NeedsGrpc(*spec) || apart)) {
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

// As RunOptions, if this process is one of several tasks of this node.
int RunAsTask(char** argv, Options& options, const Environment& environment,
              const ConnectFn& connect) {
  constexpr Duration kPatience = std::chrono::seconds(30);
  // So that task 0 gives up first and reports it.
  constexpr Duration kLonger = std::chrono::seconds(2);
  const NodeTasks tasks = *options.tasks;
  const Duration patience = std::min<Duration>(kPatience, options.policy.join_timeout);
  const bool runs_none = options.instead.dry_run || options.instead.print_env;
  if (tasks.local > 0 && runs_none) return kExitOk;
  if (tasks.local > 0) {
    if (!environment.Get(kEnvToken).empty()) ::prctl(PR_SET_DUMPABLE, 0);
    return RunTask(tasks, environment, patience + kLonger);
  }
  absl::StatusOr<GatheredTasks> gathered = GatheredTasks();
  // If another program of hlaunch execed this one, that program has gathered the tasks, or has
  // failed to.
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

// Runs a job, from its command line to its exit code. `read` parses the options.
int RunJob(int argc, char** argv, const ReadOptionsFn& read, const ConnectFn& connect,
           const ConductFn& conduct) {
  // From now on the signals that the agent handles cannot end this process. They are delivered when
  // a part of the program waits for them.
  BlockAgentSignals();
  const Environment environment = Environment::OfThisProcess();
  const Surroundings surroundings = SurroundingsOfThisProcess(environment);
  absl::StatusOr<Options> options = read(argc, argv, surroundings);
  if (!options.ok()) {
    const Options right = ParseWhatIsRight(argc, argv, surroundings);
    if (const auto task = OtherTask(right, surroundings)) {
      return RefuseInTask(*task, options.status());
    }
    return GiveUp(right, environment, options.status(), argv, connect);
  }
  if (options->text_to_print) {
    std::fputs(options->text_to_print->c_str(), stdout);
    return FlushStdout();
  }
  if (options->instead.installs()) return InstallPrograms(options->instead);
  // Not in `hlaunch-agent`: it is a part of a job that starts here.
  if (!connect) {
    const std::optional<int> ended = RunOnCluster(*options, environment, surroundings);
    if (ended.has_value()) return *ended;
  }
  if (options->detach && options->detached_directory.empty()) {
    return Detach(argc, argv, *options, environment, surroundings);
  }
  if (!options->worker.signals_to_handle.empty()) {
    BlockAgentSignals(options->worker.signals_to_handle);
  }
  WipeFromEnvironment(kEnvToken);
  SetLogLevel(options->output.log_level);
  if (options->output.json) SetLogJson();
  if (options->hosts.any()) return RunOnHosts(argv, *options, environment, conduct);
  if (options->tasks) return RunAsTask(argv, *options, environment, connect);
  GatheredTasks none;
  return RunOptions(argv, *options, environment, none, connect);
}

// Reads a command line that may have words of other launchers. The name of the program says of
// which.
absl::StatusOr<TranslatedLine> Translate(int argc, char** argv) {
  const std::vector<std::string> typed(argv + 1, argv + argc);
  const Environment environment = Environment::OfThisProcess();
  if (IsDeepspeedName(argv[0])) {
    return TranslateDeepspeed(typed, environment, WorkingDirectory(), ReadTextFile);
  }
  return IsMpirunName(argv[0]) ? TranslateMpirun(typed, environment, ReadTextFile, argv[0])
                               : TranslateWithin(typed);
}

// Runs a job whose command line may have words of other launchers.
int RunTranslated(int argc, char** argv, const ConnectFn& connect, const ConductFn& conduct) {
  absl::StatusOr<TranslatedLine> line = Translate(argc, argv);
  if (!line.ok()) {  // Other nodes may have to be told.
    const absl::Status why = line.status();
    const auto fail = [&](int, char**, const Surroundings&) -> absl::StatusOr<Options> {
      return why;
    };
    return RunJob(argc, argv, fail, connect, conduct);
  }
  if (line->text_to_print) {
    std::fputs(line->text_to_print->c_str(), stdout);
    return FlushStdout();
  }
  for (const std::string& remark : line->remarks) LogWarning(remark);
  if (!line->ssh_arguments.empty()) {
    const std::string there = Environment::OfThisProcess().Get(kEnvSshArgs);
    ::setenv(kEnvSshArgs, absl::StrCat(there, " ", line->ssh_arguments).c_str(), 1);
  }
  if (IsDeepspeedName(argv[0])) {
    const Environment environment = Environment::OfThisProcess();
    ::setenv(kEnvPythonPath, DeepspeedPythonPath(environment, WorkingDirectory()).c_str(), 1);
  } else if (!IsMpirunName(argv[0])) {
    line->words[0] = argv[0];
  }
  std::vector<char*> words;
  for (std::string& word : line->words) words.push_back(word.data());
  words.push_back(nullptr);
  return RunJob(static_cast<int>(line->words.size()), words.data(), ReadJobOptions, connect,
                conduct);
}

// Runs `hlaunch help [COMMAND]` or `hlaunch version` as if `option` had been typed. `most` is the
// greatest argc.
int RunAsOption(int argc, char** argv, char* option, int most, const ConnectFn& connect,
                const std::vector<ProgramCommand>& agent_commands) {
  const char* const named[] = {argv[0], argc == 3 ? argv[2] : "help"};
  // Without this check such a word could be started as a script.
  if (argc > most || FindCommand(2, named) == nullptr) {
    LogError(absl::StrCat("hlaunch ", argv[1], " takes no word like ",
                          PrintableLine(argv[argc - 1]), "; see hlaunch --help"));
    return kExitUsage;
  }
  std::vector<char*> words = {argv[0], option, nullptr};
  if (argc == 3) words.insert(words.begin() + 1, argv[2]);
  return Launch(argc, words.data(), connect, agent_commands);
}

// Execs `hlaunch-agent` with `words`, which begin with the program's name. Returns only if that
// fails.
int BecomeAgentWith(const std::vector<std::string>& words) {
  std::vector<std::string> copies = words;
  std::vector<char*> pointers;
  for (std::string& word : copies) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  LogError(absl::StrCat("hlaunch ", words[1], " ", ExecAgentProgram(pointers.data())));
  return kExitNotFound;
}

// Runs `hlaunch token`. A token derived from another one needs OpenSSL, which only the agent
// program has.
int RunToken(int argc, char** argv, const std::vector<ProgramCommand>& agent_commands) {
  const absl::StatusOr<TokenOptions> options = ParseTokenOptions(argc, argv);
  if (!options.ok() || !options->derives()) return MakeToken(argc, argv);
  for (const ProgramCommand& command : agent_commands) {
    if (absl::string_view(command.word) == argv[1]) return command.run(argc, argv);
  }
  LogError(absl::StrCat("hlaunch token ", ExecAgentProgram(argv)));
  return kExitNotFound;
}

// Runs `hlaunch cluster`. Its commands need OpenSSL, which hlaunchd has; its help does not need it.
int RunCluster(int argc, char** argv) {
  const absl::StatusOr<MembershipOptions> options = ParseMembershipOptions(argc, argv);
  if (!options.ok()) {
    LogError(options.status().message());
    return kExitUsage;
  }
  if (options->text_to_print) {
    std::fputs(options->text_to_print->c_str(), stdout);
    return FlushStdout();
  }
  LogError(absl::StrCat("hlaunch cluster ", ExecProgram("hlaunchd", argv)));
  return kExitNotFound;
}

// MPICH runs `mpiexec -pmi_args PORT …` from PATH if a program without a launcher calls
// MPI_Comm_spawn or asks for the size of its universe. This function refuses that.
int RefuseSingletonSpawn() {
  LogError(
      "an MPI program that was started without a launcher asked for one, to start further "
      "programs, and hlaunch starts none; start it with hlaunch or with MPICH's mpiexec");
  return 1;
}

}  // namespace

int Launch(int argc, char** argv, const ConnectFn& connect,
           const std::vector<ProgramCommand>& agent_commands, const ConductFn& conduct) {
  SayWhatIsLacking();
  if (argc > 1 && absl::string_view(argv[1]) == "-pmi_args") return RefuseSingletonSpawn();
  NameAfterProgram();
  NoteOwnPython(argv[0]);
  if (connect) ChooseNameServices();
  DoWithoutOpenSslModules();
  const bool as_other = IsMpirunName(argv[0]) || IsDeepspeedName(argv[0]);
  const CommandRow* const row = as_other ? nullptr : FindCommand(argc, argv);
  if (row == nullptr && ProgramName(argv[0]) == "torchrun") {
    return RunJob(argc, argv, ReadJobOptions, connect, conduct);
  }
  if (row == nullptr) return RunTranslated(argc, argv, connect, conduct);
  static char help[] = "--help", version[] = "--version";
  std::vector<ProgramCommand> commands = {
      {"run", RunAdopted},
      {"adopt", Adopt},
      {"devices", ShowDevices},
      {"check", CheckNode},
      {"attach", AttachJob},
      {"logs", ShowLogs},
      {"stop", StopJob},
      {"cluster", RunCluster},
      {"kill", KillJob},
      {"ps",
       [](int count, char** words) { return ShowClusterJobs(count, words, BecomeAgentWith); }},
      {"nodes", ShowClusterHosts},
      {"top", [](int count, char** words) { return ShowTop(count, words, BecomeAgentWith); }},
      {"agent", RunAgentStub},
      {"hold", RunHold},
      {kStandInWord, RunStandIn},
      {kCarriedPmixWord, BecomeCarriedPmix},
      {"token", [&](int, char**) { return RunToken(argc, argv, agent_commands); }},
      {"doctor",
       [&](int, char**) { return RunJob(argc, argv, ReadDoctorOptions, connect, conduct); }},
      {"help",
       [&](int, char**) { return RunAsOption(argc, argv, help, 3, connect, agent_commands); }},
      {"version",
       [&](int, char**) { return RunAsOption(argc, argv, version, 2, connect, agent_commands); }}};
  if (!connect) {
    std::optional<int> done = RunForCluster(row->word, argc, argv, BecomeAgentWith);
    if (!done.has_value()) done = RunForOwnJob({argv, argv + argc}, BecomeAgentWith);
    if (done.has_value()) return *done;
  }
  commands.insert(commands.end(), agent_commands.begin(), agent_commands.end());
  for (const ProgramCommand& command : commands) {
    if (absl::string_view(command.word) == row->word) return command.run(argc, argv);
  }
  HLAUNCH_CHECK(row->program == CommandProgram::kAgent && !connect);
  // hlaunch-agent carries out the command.
  LogError(absl::StrCat("hlaunch ", row->word, " ", ExecAgentProgram(argv)));
  return kExitNotFound;
}

}  // namespace hlaunch
