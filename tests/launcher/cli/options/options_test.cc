// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/options/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "launcher/cli/options/command_table.h"
#include "launcher/cli/options/parse_options.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

absl::StatusOr<Options> Parse(const Words& words) {
  std::vector<const char*> argv = {"hlaunch"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  return ParseOptions(static_cast<int>(argv.size()), argv.data());
}

Options MustParse(const Words& words) {
  absl::StatusOr<Options> options = Parse(words);
  EXPECT_TRUE(options.ok()) << options.status();
  return options.ok() ? *options : Options{};
}

std::string Error(const Words& words) {
  const absl::StatusOr<Options> options = Parse(words);
  EXPECT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(options.status().message());
}

TEST(ParseOptions, HasDefaults) {
  const Options options = MustParse({"train.py"});
  EXPECT_EQ(options.policy.min_nodes, 1);
  EXPECT_EQ(options.policy.max_nodes, 1);
  EXPECT_EQ(options.nproc, 1);
  EXPECT_EQ(options.policy.max_restarts, 0);
  EXPECT_EQ(options.worker.stop_grace, seconds(30));
  EXPECT_EQ(options.policy.join_timeout, seconds(600));
  EXPECT_EQ(options.policy.lease.loss_limit, seconds(30));
  EXPECT_FALSE(options.meeting.endpoint.has_value());
  EXPECT_FALSE(options.text_to_print.has_value());
  EXPECT_THAT(options.script.command, ElementsAre("train.py"));
}

TEST(ParseOptions, ReadsEveryOptionInBothSpellings) {
  const char* const spellings[][11] = {
      {"--nproc-per-node=8", "--rdzv-endpoint=n0:7", "--rdzv-id=j1", "--rdzv-backend=c10d",
       "--node-rank=1", "--max-restarts=3", "--token-file=/t", "--shutdown-timeout=5m",
       "--join-timeout=1.5", "--loss-limit=20s", "--no-python"},
      {"--nproc_per_node=8", "--rdzv_endpoint=n0:7", "--rdzv_id=j1", "--rdzv_backend=c10d",
       "--node_rank=1", "--max_restarts=3", "--token_file=/t", "--shutdown_timeout=5m",
       "--join_timeout=1.5", "--loss_limit=20s", "--no_python"}};
  for (const auto& spelling : spellings) {
    Words words(std::begin(spelling), std::end(spelling));
    words.insert(words.end(), {"--nnodes", "2:4", "--stdin", "-v", "--store-dialect=torch1.13",
                               "--store-allow=10.0.0.0/8", "--store-max-key=64K",
                               "--store_max_value=1G", "--store-max-total", "3000000000", "x"});
    const Options options = MustParse(words);
    EXPECT_EQ(options.policy.min_nodes, 2);
    EXPECT_EQ(options.policy.max_nodes, 4);
    EXPECT_EQ(options.nproc, 8);
    ASSERT_TRUE(options.meeting.endpoint.has_value());
    EXPECT_EQ(options.meeting.endpoint->host, "n0");
    EXPECT_EQ(options.meeting.endpoint->port, 7);
    EXPECT_EQ(options.meeting.job_id, "j1");
    EXPECT_EQ(options.meeting.backend, "c10d");
    EXPECT_EQ(options.node.rank, 1);
    EXPECT_EQ(options.policy.max_restarts, 3);
    EXPECT_EQ(options.meeting.token_file, "/t");
    EXPECT_EQ(options.worker.stop_grace, seconds(300));
    EXPECT_EQ(options.policy.join_timeout, milliseconds(1500));
    EXPECT_EQ(options.policy.lease.loss_limit, seconds(20));
    EXPECT_EQ(options.store.server.older, C10dDialect::kTorch1);
    ASSERT_TRUE(options.store.server.access.has_value());
    EXPECT_TRUE(options.store.server.access->asked_for);
    EXPECT_EQ(options.store.server.limits.key_bytes, 64u << 10);
    EXPECT_EQ(options.store.server.limits.value_bytes, 1u << 30);
    EXPECT_EQ(options.store.server.limits.total_bytes, 3'000'000'000u);
    EXPECT_TRUE(options.script.no_python);
    EXPECT_EQ(options.worker.stdin_to, StdinTo::kRank0);
    EXPECT_EQ(options.output.log_level, LogLevel::kDebug);
  }
}

TEST(ParseOptions, ReadsTheStaticForm) {
  const Options options = MustParse({"--nnodes=2", "--node_rank=0", "--master_addr=[fd00::1]",
                                     "--master_port", "29511", "train.py"});
  EXPECT_EQ(options.meeting.master_addr, "fd00::1");
  EXPECT_EQ(options.meeting.master_port, 29511);
}

TEST(ParseOptions, ReadsWhoServesTheStore) {
  EXPECT_EQ(MustParse({"x"}).store.in_worker, std::nullopt);
  EXPECT_EQ(MustParse({"--master-store=agent", "x"}).store.in_worker, false);
  EXPECT_EQ(MustParse({"--master_store", "worker", "x"}).store.in_worker, true);
}

TEST(ParseOptions, ReadsBracketedAddressWithoutPort) {
  const Options options = MustParse({"--rdzv-endpoint", "[::1]", "x"});
  EXPECT_EQ(options.meeting.endpoint->host, "::1");
  EXPECT_EQ(options.meeting.endpoint->port, kDefaultRdzvPort);
}

TEST(ParseOptions, ReadsTorchrunsRendezvousConf) {
  const Options options =
      MustParse({"--rdzv-conf",
                 " is_host=True,join_timeout=90, last_call_timeout=5,timeout=900,"
                 "cas_backoff_max_seconds=2",
                 "--nnodes=2", "--rdzv-endpoint=n0", "x"});
  EXPECT_EQ(options.node.is_host, true);
  EXPECT_EQ(options.policy.join_timeout, seconds(90));
  EXPECT_EQ(options.policy.last_call, seconds(5));
  EXPECT_THAT(options.unneeded_conf, ElementsAre("timeout", "cas_backoff_max_seconds"));
  EXPECT_EQ(MustParse({"--rdzv_conf=is_host=0", "x"}).node.is_host, false);
  EXPECT_EQ(MustParse({"--rdzv-conf", "", "x"}).node.is_host, std::nullopt);
}

TEST(ParseOptions, ReadsConfWithinQuotesThatNoShellTookAway) {
  const Options options =
      MustParse({"--rdzv-conf='join_timeout=5,timeout=5,rank=0'", "--nnodes=2", "x"});
  EXPECT_EQ(options.policy.join_timeout, seconds(5));
  EXPECT_THAT(options.unneeded_conf, ElementsAre("timeout", "rank"));
}

TEST(ParseOptions, IgnoresUnknownConfUnderTorchrunsName) {
  const char* const words[] = {"torchrun", "--rdzv-conf=mine=1", "x"};
  const auto options = ParseOptions(3, words, Environment());
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_THAT(options->unneeded_conf, ElementsAre("mine"));
}

TEST(ParseOptions, LetsAnOptionBeatTheConf) {
  const Options options = MustParse({"--join-timeout=7", "--last-call=8", "--rdzv-conf",
                                     "join_timeout=90,last_call_timeout=91", "x"});
  EXPECT_EQ(options.policy.join_timeout, seconds(7));
  EXPECT_EQ(options.policy.last_call, seconds(8));
}

TEST(ParseOptions, ReadsWhenAJobGrows) {
  const JobPolicy policy =
      MustParse({"--nnodes=2:4", "--rdzv-endpoint=n0", "--on-join=next-round", "--on-loss=wait",
                 "--grow-interval=0", "--boundary-limit=30", "--node-multiple=2", "x"})
          .policy;
  EXPECT_EQ(policy.on_join, OnJoin::kNextRound);
  EXPECT_EQ(policy.on_loss, OnLoss::kWait);
  EXPECT_EQ(policy.grow_interval, seconds(0));
  EXPECT_EQ(policy.boundary_limit, seconds(30));
  EXPECT_EQ(policy.node_multiple, 2);
  EXPECT_EQ(MustParse({"--on-join=ignore", "x"}).policy.on_join, OnJoin::kIgnore);
  EXPECT_EQ(MustParse({"--on-loss=fail", "x"}).policy.on_loss, OnLoss::kFail);
  const JobPolicy defaults = MustParse({"x"}).policy;
  EXPECT_EQ(defaults.on_join, OnJoin::kRestart);
  EXPECT_EQ(defaults.on_loss, OnLoss::kShrink);
  EXPECT_EQ(defaults.grow_interval, seconds(60));
  EXPECT_EQ(defaults.boundary_limit, seconds(600));
}

TEST(ParseOptions, ReadsWhatARoundMayWaitFor) {
  const Options options = MustParse({"--spares=2", "--preflight=off", "--last_call=1.5", "x"});
  EXPECT_EQ(options.policy.spares, 2);
  EXPECT_EQ(options.policy.preflight, Preflight::kOff);
  EXPECT_EQ(options.policy.last_call, milliseconds(1500));
  EXPECT_EQ(MustParse({"x"}).policy.spares, 0);
  EXPECT_EQ(MustParse({"x"}).policy.last_call, seconds(30));
  EXPECT_EQ(MustParse({"--preflight", "quick", "x"}).policy.preflight, Preflight::kQuick);
}

TEST(ParseOptions, ReadsWhatFollowsAFailure) {
  const Options none = MustParse({"x"});
  EXPECT_EQ(none.policy.restart_window, seconds(0));
  EXPECT_EQ(none.policy.restart_pause, seconds(0));
  EXPECT_EQ(none.policy.restart_on + none.policy.end_on + none.policy.free_on, "");
  const Options options =
      MustParse({"--restart-window", "24h", "--restart_pause=1.5", "--restart-on", "1,64-78,hang",
                 "--end-on=3", "--free-on", "75, SIGUSR1", "x"});
  EXPECT_EQ(options.policy.restart_window, std::chrono::hours(24));
  EXPECT_EQ(options.policy.restart_pause, milliseconds(1500));
  EXPECT_EQ(options.policy.restart_on, "1,64-78,hang");
  EXPECT_EQ(options.policy.end_on, "3");
  EXPECT_EQ(options.policy.free_on, "75, SIGUSR1");
}

TEST(ParseOptions, RefusesAnEmptyListOfFailures) {
  for (const char* option : {"--restart-on", "--end-on", "--free-on"}) {
    EXPECT_THAT(Error({option, "", "x"}), HasSubstr("it names no failure")) << option;
  }
}

TEST(ParseOptions, ReadsHowOftenRunningNodesAreChecked) {
  EXPECT_EQ(MustParse({"--drain-file", "/run/gone", "x"}).drain.file, "/run/gone");
  EXPECT_EQ(MustParse({"--drain-url", "http://[::1]:81/a", "x"}).drain.url->port, 81);
  EXPECT_EQ(MustParse({"x"}).health_interval, seconds(60));
  EXPECT_EQ(MustParse({"--health-interval", "0", "x"}).health_interval, Duration::zero());
  EXPECT_EQ(MustParse({"--health-interval=5m", "x"}).health_interval, seconds(300));
}

TEST(ParseOptions, CountsCpusForAutoAndCpu) {
  EXPECT_EQ(MustParse({"--nproc-per-node", "auto", "x"}).nproc, std::nullopt);
  EXPECT_EQ(MustParse({"--nproc-per-node", "cpu", "x"}).nproc, std::nullopt);
}

TEST(ParseOptions, ReadsWhatConcernsWorkers) {
  const Options options =
      MustParse({"--role=trainer", "--signals_to_handle=SIGTERM,USR1", "--virtual-local-rank",
                 "--keep-env", "--compat=slurm,openmpi", "--local_addr=[fd00::7]", "x"});
  EXPECT_EQ(options.worker.role, "trainer");
  EXPECT_THAT(options.worker.signals_to_handle, ElementsAre(SIGTERM, SIGUSR1));
  EXPECT_TRUE(options.worker.virtual_local_rank);
  EXPECT_TRUE(options.worker.keep_env);
  EXPECT_THAT(options.worker.compat, ElementsAre("openmpi", "slurm"));
  EXPECT_EQ(options.meeting.local_addr, "fd00::7");
  EXPECT_EQ(MustParse({"x"}).worker.role, "default");
  EXPECT_EQ(MustParse({"--role", "", "x"}).worker.role, "");
}

TEST(ParseOptions, LeavesTheNameOfTheLocalRankOptionOut) {
  EXPECT_EQ(MustParse({"x"}).script.local_rank_option, "");
  const Options options = MustParse({"--pass-local-rank", "train.py"});
  EXPECT_EQ(options.script.local_rank_option, "--local-rank");
  EXPECT_THAT(options.script.command, ElementsAre("train.py"));
  EXPECT_EQ(MustParse({"--pass_local_rank=--local_rank", "x"}).script.local_rank_option,
            "--local_rank");
  EXPECT_EQ(MustParse({"--pass-local-rank=rank", "x"}).script.local_rank_option, "--rank");
  EXPECT_EQ(MustParse({"--pass-local-rank=-r", "x"}).script.local_rank_option, "-r");
}

TEST(ParseOptions, ServesMetricsOnLoopbackUnlessAnAddressIsGiven) {
  EXPECT_EQ(MustParse({"--metrics-port=0", "x"}).output.metrics->host, "127.0.0.1");
  const Options options = MustParse({"--metrics-port", "[fd77::10]:9400", "x"});
  EXPECT_FALSE(options.output.status_page);
  EXPECT_EQ(MustParse({"--status-page=9401", "x"}).output.status_page->host, "127.0.0.1");
  EXPECT_EQ(options.output.metrics->host, "fd77::10");
  EXPECT_EQ(options.output.metrics->port, 9400);
}

TEST(ParseOptions, DividesACommandThatIsToldOfEventsAndReadsAUrl) {
  const EventReceiver command = MustParse({"--on-event", "notify 'my job'", "x"}).output.on_event;
  EXPECT_THAT(command.command, ElementsAre("notify", "my job"));
  EXPECT_FALSE(command.url);
  const EventReceiver url = MustParse({"--on-event=http://hooks:81/7", "x"}).output.on_event;
  EXPECT_EQ(url.Name(), "http://hooks:81");
  EXPECT_TRUE(url.command.empty());
  EXPECT_TRUE(MustParse({"x"}).output.on_event.none());
}

TEST(ParseOptions, ReadsWhereOutputGoes) {
  const Options options =
      MustParse({"--log_dir=/logs", "-r", "3", "-t0:1,12:2", "--local_ranks_filter=0,2",
                 "--duplicate_stdout_filters=a,,b,c", "--duplicate-stderr-filters", "Error",
                 "--log-prefix", "[${rank}]", "--log-rotate=1M:3", "--report=r.json",
                 "--termination-log=end", "--json", "--metrics-port=9100", "x"});
  EXPECT_EQ(options.logs.directory, "/logs");
  EXPECT_EQ(options.logs.redirects.Of(5), Streams::kBoth);
  EXPECT_EQ(options.logs.tee.Of(12), Streams::kErr);
  EXPECT_THAT(options.logs.shown_ranks, ElementsAre(0, 2));
  EXPECT_THAT(options.logs.stdout_filters, ElementsAre("a,b", "c"));
  EXPECT_THAT(options.logs.stderr_filters, ElementsAre("Error"));
  EXPECT_EQ(options.logs.prefix_template, "[${rank}]");
  EXPECT_EQ(options.logs.rotation.bytes, 1u << 20);
  EXPECT_EQ(options.logs.rotation.keep, 3);
  EXPECT_EQ(options.output.report_file, "r.json");
  EXPECT_TRUE(options.output.json);
  EXPECT_EQ(options.output.metrics->port, 9100);
  EXPECT_EQ(options.output.termination_log, "end");
}

TEST(ParseOptions, TakesTheLastOfARepeatedOption) {
  EXPECT_EQ(MustParse({"--nproc-per-node=2", "--nproc_per_node=4", "-v", "-v", "x"}).nproc, 4);
}

TEST(ParseOptions, TakesEachOfAnOptionThatRepeats) {
  const Options options =
      MustParse({"--watch-log", "fail:nan", "--watch-log-silence=60:step", "--watch-log=b", "x"});
  ASSERT_EQ(options.worker.line_rules.size(), 2u);
  EXPECT_EQ(options.worker.line_rules[0].pattern, "nan");
  EXPECT_EQ(options.worker.line_rules[1].pattern, "b");
  EXPECT_EQ(options.worker.silence_rules.size(), 1u);
  EXPECT_THAT(Error({"--watch-log=a", "--watch-log=fail:(", "x"}),
              HasSubstr("--watch-log 'fail:(': is no pattern of RE2"));
}

TEST(ParseOptions, TakesTheNumberOfWorkersInTheWordsOfOtherLaunchers) {
  for (const Words& words : std::vector<Words>{{"-n2", "x"},
                                               {"-n", "2", "x"},
                                               {"-np=2", "x"},
                                               {"--gpus", "2", "x"},
                                               {"--ngpus=2", "x"},
                                               {"--num-gpus", "2", "x"},
                                               {"--num_gpus=2", "x"},
                                               {"--num_processes", "2", "x"}}) {
    const Options options = MustParse(words);
    EXPECT_EQ(options.nproc, 2) << words[0];
    EXPECT_THAT(options.script.command, ElementsAre("x"));
  }
  EXPECT_EQ(MustParse({"--num_gpus", "4", "--nnodes=2", "--rdzv-endpoint=a", "x"}).nproc, 4);
  EXPECT_THAT(MustParse({"train.py", "--gpus", "8"}).script.command,
              ElementsAre("train.py", "--gpus", "8"));
  const Options hosts = MustParse({"--hosts=a,b", "--num-processes=8", "x"});
  EXPECT_EQ(hosts.hosts.ranks, 8);
  const Options both = MustParse({"--hosts=a,b", "-n", "8", "--nproc-per-node=4", "x"});
  EXPECT_EQ(both.hosts.ranks, 8);
  EXPECT_EQ(both.hosts.ranks_of_each, 4);
  EXPECT_EQ(MustParse({"-n", "2", "--nproc-per-node=4", "x"}).nproc, 2);
  EXPECT_EQ(MustParse({"-n", "3", "--nproc-per-node=2:socket", "x"}).nproc_share, 3);
  EXPECT_EQ(MustParse({"--nproc-per-node=2:socket=4", "x"}).nproc_share, 4);
  EXPECT_EQ(MustParse({"--nproc-per-node=2:socket=4", "x"}).nproc_word, "2:socket");
}

TEST(ParseOptions, RefusesTwoWordsForTheNumberOfWorkers) {
  EXPECT_THAT(Error({"--num_gpus", "2", "--num_processes=4", "x"}),
              HasSubstr("--num_gpus 2 and --num_processes 4: leave one of them out"));
  EXPECT_THAT(Error({"-n", "4", "--gpus", "2", "x"}), HasSubstr("-n 4 and --gpus 2: leave"));
  EXPECT_EQ(MustParse({"-n", "4", "-n2", "x"}).nproc, 2);
}

// `true` would run in place of the script, and say nothing.
TEST(ParseOptions, RefusesAFlagsValueThatWouldBeTheProgram) {
  EXPECT_THAT(Error({"--standalone", "true", "-n", "2", "x"}),
              HasSubstr("--standalone takes no value: leave 'true' out"));
  EXPECT_THAT(Error({"--per_node", "yes", "x"}), HasSubstr("--per_node takes no value"));
  EXPECT_THAT(MustParse({"--standalone", "true"}).script.command, ElementsAre("true"));
  EXPECT_THAT(MustParse({"--standalone", "--", "true", "x"}).script.command,
              ElementsAre("true", "x"));
  EXPECT_THAT(MustParse({"--no-python", "yes", "x"}).script.command, ElementsAre("yes", "x"));
}

TEST(ParseOptions, TakesDashesAndUnderscoresInOneWord) {
  EXPECT_EQ(MustParse({"--nproc-per_node=3", "x"}).nproc, 3);
  EXPECT_EQ(MustParse({"--nproc_per-node", "3", "x"}).nproc, 3);
}

TEST(ParseOptions, SaysOfANumberBehindDashesThatItStandsThere) {
  EXPECT_THAT(Error({"--", "-n", "2", "x"}), HasSubstr("-n stands behind --"));
}

TEST(ParseOptions, LeavesTheScriptsArgumentsAlone) {
  const Words command = {"train.py", "--nnodes", "9", "--", "-v", "--help", "--bogus", "", "a=b="};
  const Options options = MustParse(command);
  EXPECT_EQ(options.script.command, command);
  EXPECT_EQ(options.policy.max_nodes, 1);
}

TEST(ParseOptions, StripsOneSeparator) {
  EXPECT_THAT(MustParse({"--nnodes=1", "--", "train.py", "--", "-x"}).script.command,
              ElementsAre("train.py", "--", "-x"));
  EXPECT_THAT(MustParse({"--nnodes=1", "--", "train.py"}).option_words,
              ElementsAre("hlaunch", "--nnodes=1"));
}

TEST(ParseOptions, SwallowsTheSeparatorsThatTorchrunSwallows) {
  const auto args = [](std::vector<const char*> words) {
    const auto options = ParseOptions(static_cast<int>(words.size()), words.data(), Environment());
    return options.ok() ? options->script.command
                        : std::vector<std::string>{options.status().ToString()};
  };
  EXPECT_THAT(args({"torchrun", "x", "--", "a", "--", "b"}), ElementsAre("x", "a", "--", "b"));
  EXPECT_THAT(args({"torchrun", "--", "x", "--", "a"}), ElementsAre("x", "--", "a"));
  EXPECT_THAT(args({"torchrun", "x", "a", "--", "b"}), ElementsAre("x", "a", "--", "b"));
  EXPECT_THAT(args({"hlaunch", "x", "--", "a"}), ElementsAre("x", "--", "a"));
}

TEST(ParseOptions, KeepsTheWordsAsTyped) {
  EXPECT_THAT(MustParse({"--nnodes=2", "--nproc_per_node", "auto", "train.py", "-v"}).option_words,
              ElementsAre("hlaunch", "--nnodes=2", "--nproc_per_node", "auto"));
}

TEST(ParseOptions, TakesModuleNameAsTheScript) {
  const Options options = MustParse({"-m", "pkg.train", "-m"});
  EXPECT_TRUE(options.script.module);
  EXPECT_THAT(options.script.command, ElementsAre("pkg.train", "-m"));
}

TEST(ParseOptions, AcceptsWhatTorchrunScriptsSay) {
  MustParse({"--standalone", "--nproc_per_node=2", "x.py"});
  MustParse({"--nnodes=1:1", "--rdzv_backend=c10d", "--rdzv_endpoint=localhost:0", "x.py"});
  MustParse({"--nnodes=1", "--node_rank=0", "--master_port=0", "x.py"});
  MustParse({"--nnodes=2", "--node_rank=1", "--master_addr=a", "--master_port=1", "--rdzv_id=9",
             "--rdzv_backend=c10d", "--rdzv_endpoint=a:1", "x.py"});
}

TEST(ParseOptions, GivesHelpAsAResult) {
  for (const Words& words : {Words{"--help"}, Words{"-h"}, Words{"--bogus", "--help"}}) {
    const Options options = MustParse(words);
    ASSERT_TRUE(options.text_to_print.has_value());
    EXPECT_THAT(*options.text_to_print, HasSubstr("usage: hlaunch [options] script.py"));
    EXPECT_THAT(*options.text_to_print, HasSubstr("--nproc-per-node N|WORD"));
    EXPECT_THAT(*options.text_to_print, HasSubstr("Examples:"));
    EXPECT_THAT(*options.text_to_print, HasSubstr("Exit code:"));
  }
}

TEST(ParseOptions, TakesWhatTorchrunNeedsAndHlaunchDoesNot) {
  const Options options =
      MustParse({"--monitor-interval=5", "--start_method=fork", "--event-log-handler=null",
                 "--rdzv-backend=c10d", "--logs-specs=default", "x"});
  EXPECT_THAT(options.unneeded, ElementsAre("--monitor-interval", "--start-method",
                                            "--event-log-handler", "--logs-specs"));
}

TEST(ParseOptions, RunsAPathWhateverElseIsSaid) {
  const Options options = MustParse({"--run-path", "--no-python", "/a/train"});
  EXPECT_TRUE(options.script.run_path);
  EXPECT_FALSE(options.script.no_python);
}

TEST(ParseOptions, SpeaksUnderTheNameItWasCalledBy) {
  const char* const help[] = {"/usr/bin/torchrun", "--help"};
  const char* const nothing[] = {"torchrun"};
  const char* const unknown[] = {"torchrun", "--bogus", "x"};
  EXPECT_THAT(*ParseOptions(2, help)->text_to_print,
              HasSubstr("usage: torchrun [options] script.py [args...]\n\n"));
  EXPECT_EQ(ParseOptions(1, nothing).status().message(),
            "no script given; usage: torchrun [options] script.py [args...]");
  EXPECT_EQ(ParseOptions(3, unknown).status().message(),
            "unknown option --bogus; see torchrun --help"
            "; the script's own options stand after the script");
}

TEST(ParseOptions, HelpFitsATerminal) {
  const std::string text = *MustParse({"--help"}).text_to_print;
  for (size_t start = 0; start < text.size();) {
    const size_t end = text.find('\n', start);
    EXPECT_LE(end - start, 80u) << text.substr(start, end - start);
    start = end + 1;
  }
}

TEST(ParseOptions, GivesTheVersionAsAResult) {
  EXPECT_THAT(*MustParse({"--version"}).text_to_print, HasSubstr("hlaunch "));
  EXPECT_THAT(*MustParse({"--version"}).text_to_print, Not(HasSubstr("OpenSSL")));
  EXPECT_THAT(*MustParse({"--version", "-v"}).text_to_print, HasSubstr("\n  OpenSSL 3"));
}

struct BadLine {
  Words words;
  const char* message;
};

class WrongOptions : public testing::TestWithParam<BadLine> {};

TEST_P(WrongOptions, AreRefusedInOneLine) {
  const std::string message = Error(GetParam().words);
  EXPECT_EQ(message, GetParam().message);
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

const BadLine kBadLines[] = {
    {{"--master-store", "both", "x"}, "--master-store 'both': expected agent or worker"},
    {{}, "no script given; usage: hlaunch [options] script.py [args...]"},
    {{"--nnodes", "2"}, "no script given; usage: hlaunch [options] script.py [args...]"},
    {{"--"}, "no script given; usage: hlaunch [options] script.py [args...]"},
    {{""}, "no script given; usage: hlaunch [options] script.py [args...]"},
    {{"--bogus", "2", "./train"},
     "unknown option --bogus; see hlaunch --help; the script's own options stand after the "
     "script"},
    {{"--nodes=2", "x"},
     "--nodes '2': expected names of hosts, as in node1,node2; how many nodes there are, --nnodes "
     "says"},
    {{"--nproc", "2", "x"}, "unknown option --nproc; did you mean --nproc-per-node?"},
    {{"--rdzv_endpiont=n0", "x"}, "unknown option --rdzv_endpiont; did you mean --rdzv-endpoint?"},
    {{"-np", "4", "--nnodes", "2", "x"},
     "-np is the number of all ranks, and each node of those that are started by hand would have "
     "to know its part: write --nproc-per-node 2, the workers of each node, or --hosts A,B"},
    {{"--num_processes", "9", "--nnodes", "2", "x"},
     "--num_processes is the number of all ranks, and each node of those that are started by hand "
     "would have to know its part: write --nproc-per-node N, the workers of each node, or --hosts "
     "A,B"},
    {{"--gpus", "8", "--nnodes", "2", "x"},
     "--gpus 8 may mean each node's GPUs or those of all nodes: write --nproc-per-node N, the "
     "workers of each node"},
    {{"--ngpus=8", "--hosts=a", "x"},
     "--ngpus 8 may mean each node's GPUs or those of all nodes: write --nproc-per-node N, the "
     "workers of each node"},
    {{"--num_gpus=all", "x"},
     "--num_gpus 'all': expected a number from 1 to 4096; --nproc-per-node gpu is a worker for "
     "each GPU"},
    {{"-n0", "x"}, "-n '0': expected a number from 1 to 4096"},
    {{"--gpus"}, "--gpus needs a value, the number of workers"},
    {{"-n", "4", "--nproc-per-node", "2", "x"},
     "-n 4 and --nproc-per-node 2 (-N), the most ranks of this host: leave one of them out, or "
     "name "
     "more with --hosts"},
    {{"-n", "4", "--nproc-per-node", "gpu", "x"},
     "-n 4 and --nproc-per-node gpu: leave one of them out, or name more with --hosts"},
    {{"--num-gpus", "4", "--nproc-per-node", "2", "x"},
     "--num-gpus 4 and --nproc-per-node 2: leave one of them out"},
    {{"-n", "4", "--per-node", "x"},
     "--per-node starts one worker, which starts the others itself: leave -n out"},
    {{"–nproc-per-node", "2", "x"},
     "–nproc-per-node has a dash that is no hyphen, as copied text may have: type "
     "--nproc-per-node"},
    {{"--nnodes", "2", "—standalone", "x"},
     "—standalone has a dash that is no hyphen, as copied text may have: type --standalone"},
    {{"--stdin=all", "--hosts=a", "x"},
     "--stdin all is for the ranks of one host: of several hosts, rank 0 alone reads; give the "
     "others a file that all hosts have"},
    {{"--also", "-n 1 b", "--per-node", "x"},
     "--also is for some ranks, and with --per-node workers give them: leave one of them out"},
    {{"--also=-n 2 b", "--hosts=a", "-n", "1", "x"},
     "the programs of --also need 2 ranks, and -n says 1"},
    {{"--also=b", "x"}, "--also 'b': expected '-n N PROGRAM [ARGUMENT...]'"},
    {{"--bind=slots:0;x", "x"},
     "--bind 'slots:0;x': expected slots:A;B, the cores of each local rank, such as slots:0-1;2 or "
     "slots:0:0;1:0"},
    {{"--stdin=1", "x"}, "--stdin '1': expected 0, which is local rank 0, all or none"},
    {{"--wdir", "", "x"}, "--wdir '': the name of the folder is missing"},
    {{"-y", "x"},
     "unknown option -y; see hlaunch --help; the script's own options stand after the "
     "script"},
    {{"-vy", "x"},
     "unknown option -y; see hlaunch --help; the script's own options stand after the "
     "script"},
    {{"--", "-y"},
     "unknown option -y; see hlaunch --help; the script's own options stand after the "
     "script"},
    {{"--", "--nnodes=2", "x"}, "--nnodes stands behind --, where the script begins"},
    {{"--pass-local-rank", "--local_rank", "x"},
     "unknown option --local_rank; did you mean --pass-local-rank=--local_rank?"},
    {{"--timeout=0", "x"},
     "--timeout '0': expected a time from 1s to 365d, such as 30, 1.5, 30s, 5m, 2h or 1d"},
    {{"--monitor_interval", "soon", "x"},
     "--monitor_interval 'soon': expected a time from 0s to 365d, such as 30, 1.5, 30s, 5m, 2h or "
     "1d"},
    {{"--start-method", "thread", "x"},
     "--start-method 'thread': expected spawn, fork or forkserver"},
    {{"--event-log-handler=mine", "x"},
     "--event-log-handler 'mine': handlers are Python code of torch's, and hlaunch runs none; "
     "leave "
     "it out, or use --report FILE or --json"},
    {{"--logs-specs=mine", "x"},
     "--logs-specs 'mine': it names Python code of torch's, and hlaunch runs none; leave it out, "
     "and see --log-dir, --tee and --log-rotate"},
    {{"--bind=cores", "x"},
     "--bind 'cores': expected auto, none, numa, socket, core, core:N, l3 or slots:A;B"},
    {{"--bind=core:0", "x"}, "--bind 'core:0': expected core:N, the cores of each worker"},
    {{"--bind=core", "--numa-binding=node", "x"},
     "--bind and --numa-binding: leave one of them out"},
    {{"--per-node", "--bind=core", "x"},
     "--per-node: the worker starts its node's others, and all would be bound as one; leave --bind "
     "and --numa-binding out"},
    {{"--numa-binding=core", "x"},
     "--numa-binding 'core': expected node, socket, exclusive or core-complex"},
    {{"--print-completion=fish", "x"}, "--print-completion 'fish': expected bash or zsh"},
    {{"--install-links", ""}, "--install-links '': the name of the folder is missing"},
    {{"--install-links=a", "x"}, "--install-links runs nothing: leave out x"},
    {{"--install-links=a", "--install-copies=a"},
     "--install-links and --install-copies: leave one of them out"},
    {{"--print-env=x", "x"}, "--print-env 'x': expected a local rank, such as 0"},
    {{"--bind-to", "core", "x"}, "unknown option --bind-to; did you mean --bind?"},
    {{"--num_machines=2", "x"}, "unknown option --num_machines; did you mean --nnodes?"},
    {{"--host", "n0,n1", "x"}, "unknown option --host; did you mean --hosts?"},
    {{"--role", "a\tb", "x"}, "--role 'a b': expected at most 256 printable characters"},
    {{"--signals-to-handle", "SIGTERM,SIGKILL", "x"},
     "--signals-to-handle 'SIGTERM,SIGKILL': SIGKILL cannot be passed on: no process can handle "
     "it"},
    {{"--pass-local-rank=a b", "x"},
     "--pass-local-rank 'a b': expected an option of the script, such as --local_rank"},
    {{"--pass-local-rank=--", "x"},
     "--pass-local-rank '--': expected an option of the script, such as --local_rank"},
    {{"--compat", "pmix", "x"}, "--compat 'pmix': 'pmix' is unknown; known are openmpi, slurm"},
    {{"--local-addr", "a:1:2", "x"},
     "--local-addr 'a:1:2': a host name holds only letters, digits, '-', '.' and '_'"},
    {{"--log-dir", "", "x"}, "--log-dir '': the name of the folder is missing"},
    {{"-t", "5", "x"},
     "-t '5': expected 0 (none), 1 (stdout), 2 (stderr) or 3 (both), or one of them for some "
     "local ranks, such as 0:1,12:3"},
    {{"--redirects", "1:1,1:2", "x"}, "--redirects '1:1,1:2': names local rank 1 twice"},
    {{"--local-ranks-filter", "0-3", "x"},
     "--local-ranks-filter '0-3': expected local ranks from 0 to 4095, such as 0,2"},
    {{"--log-prefix", "", "x"},
     "--log-prefix '': expected text such as '[${role_name}${local_rank}]: ', or none"},
    {{"--log-rotate", "1", "x"},
     "--log-rotate '1': expected SIZE or SIZE:KEEP, such as 100M or 100M:5; SIZE from 4K on, KEEP "
     "from 0 to 1000"},
    {{"--report", "", "x"}, "--report '': the name of the file is missing"},
    {{"--on-event", " ", "x"}, "--on-event '': expected a command or an http URL"},
    {{"--on-event", "https://hooks/7", "x"},
     "--on-event 'https://hooks/7': https is not spoken here; give a command that speaks it: 'curl "
     "--silent --data-binary @- https://hooks/7'"},
    {{"--metrics-port", "70000", "x"},
     "--metrics-port '70000': expected a port from 0 to 65535; 0 takes a free one; for scrapers on "
     "other "
     "hosts write ADDRESS:PORT, as in 0.0.0.0:9400"},
    {{"--metrics-port", "node0:9400", "x"},
     "--metrics-port 'node0:9400': expected a port from 0 to 65535; 0 takes a free one; for "
     "scrapers on other "
     "hosts write ADDRESS:PORT, as in 0.0.0.0:9400"},
    {{"--json=1", "x"}, "--json takes no value; leave out 1"},
    {{"--nnodes"}, "--nnodes needs a value; see hlaunch --help"},
    {{"--rdzv-id=", "x.py", "y"}, "--rdzv-id= has no value; see hlaunch --help"},
    {{"--max-restarts", "\x1b[2J1\n2", "x"},
     "--max-restarts '1': expected a number from 0 to 1000000"},
    {{"--standalone=maybe", "x"}, "--standalone takes no value; leave out maybe"},
    {{"--no-python=false", "x"}, "--no-python takes no value; leave out false"},
    {{"--nnodes", "0", "x"},
     "--nnodes '0': expected N or MIN:MAX from 1 to 65536, such as 2 or 1:4"},
    {{"--nnodes", "-1", "x"},
     "--nnodes '-1': expected N or MIN:MAX from 1 to 65536, such as 2 or 1:4"},
    {{"--nnodes", "1:2:3", "x"},
     "--nnodes '1:2:3': expected N or MIN:MAX from 1 to 65536, such as 2 or 1:4"},
    {{"--nnodes", ":", "x"},
     "--nnodes ':': expected N or MIN:MAX from 1 to 65536, such as 2 or 1:4"},
    {{"--nnodes", "99999999999", "x"},
     "--nnodes '99999999999': expected N or MIN:MAX from 1 to 65536, such as 2 or 1:4"},
    {{"--nnodes", "4:2", "x"}, "--nnodes '4:2': MIN is greater than MAX; did you mean 2:4?"},
    {{"--nproc-per-node", "0", "x"},
     "--nproc-per-node '0': expected a number from 1 to 4096, N:socket (numa, l3, core), or auto, "
     "cpu, gpu, hpu or xpu"},
    {{"--nproc-per-node=2", "--per-node", "x"},
     "--per-node starts one worker, which starts the others itself: leave --nproc-per-node out"},
    {{"--devices=3-1", "x"},
     "--devices '3-1': expected numbers of `hlaunch devices` such as 0,2-3, or all, or none"},
    {{"--rdzv-endpoint", "::1", "x"},
     "--rdzv-endpoint '::1': an IPv6 address needs brackets here; write [ADDRESS] or "
     "[ADDRESS]:PORT"},
    {{"--rdzv-endpoint", "n0,", "x"}, "--rdzv-endpoint 'n0,': the host is missing"},
    {{"--rdzv-backend=static", "--node-rank=0", "--nnodes=2", "--rdzv-endpoint=n0,n1", "x"},
     "--rdzv-endpoint names several services, and --rdzv-backend static meets at one node"},
    {{"--nnodes=2", "--rdzv-endpoint=n0,n1:0", "x"},
     "--rdzv-endpoint: several nodes must know the port; write one instead of 0, such as 29400"},
    {{"--rdzv-endpoint", ":29400", "x"}, "--rdzv-endpoint ':29400': the host is missing"},
    {{"--rdzv-endpoint", "n0:65536", "x"},
     "--rdzv-endpoint 'n0:65536': a port is a number from 0 to 65535"},
    {{"--rdzv-endpoint", "http://n0", "x"},
     "--rdzv-endpoint 'http://n0': expected HOST:PORT, not a URL"},
    {{"--rdzv-backend", "etcd", "x"},
     "--rdzv-backend 'etcd': hlaunch needs no etcd to meet; use c10d, with the same endpoint's "
     "host, "
     "or static"},
    {{"--rdzv-backend", "zookeeper", "x"},
     "--rdzv-backend 'zookeeper': expected static or c10d; other backends are not needed here"},
    {{"--rdzv-id", "a b", "x"},
     "--rdzv-id 'a b': expected 1 to 256 printable characters without spaces"},
    {{"--master-port", "70000", "x"}, "--master-port '70000': expected a port from 0 to 65535"},
    {{"--master-addr", "", "x"}, "--master-addr '': the host is missing"},
    {{"--max-restarts", "many", "x"}, "--max-restarts 'many': expected a number from 0 to 1000000"},
    {{"--on-join", "now", "x"}, "--on-join 'now': expected restart, next-round or ignore"},
    {{"--on-loss", "grow", "x"}, "--on-loss 'grow': expected shrink, wait or fail"},
    {{"--node-multiple", "0", "x"}, "--node-multiple '0': expected a number from 1 to 65536"},
    {{"--nnodes", "2:7", "--node-multiple", "2", "--rdzv-endpoint", "n0", "x"},
     "--node-multiple 2: the job has 7 nodes, which is no multiple of 2"},
    {{"--join-timeout", "soon", "x"},
     "--join-timeout 'soon': expected a time from 1s to 365d, such as 30, 1.5, 30s, 5m, 2h or 1d"},
    {{"--loss-limit", "nan", "x"},
     "--loss-limit 'nan': expected a time from 1s to 365d, such as 30, 1.5, 30s, 5m, 2h or 1d"},
    {{"--store-dialect", "torch3", "x"},
     "--store-dialect 'torch3': 'torch3' is no dialect of the store: give auto, torch1.13, "
     "torch2.1 "
     "or torch2.2+"},
    {{"--store-allow", "10.0.0.1,node0", "x"},
     "--store-allow '10.0.0.1,node0': 'node0' is no address and no range; give members, all, "
     "10.0.0.7, 10.1.0.0/16 or fd00::/8"},
    {{"--store-proxy", "--master-store=worker", "x"},
     "--store-proxy leads to hlaunch's own store and --master-store worker has none: leave one of "
     "them out"},
    {{"--store-proxy", "--no-store-proxy", "x"},
     "--no-store-proxy 'true': the other one of --store-proxy and --no-store-proxy is given too"},
    {{"--store-max-key", "1G", "x"},
     "--store-max-key '1G': expected bytes from 1 to 67108864, such as 65536, 64K, 16M or 1G"},
    {{"--store-max-value", "", "x"},
     "--store-max-value '': expected bytes from 1 to 1073741824, such as 65536, 64K, 16M or 1G"},
    {{"--store-max-value", "64M", "--store-max-total=1M", "x"},
     "a value of the store may have 67108864 bytes and the whole store 1048576: let "
     "--store-max-total be at least --store-max-value"},
    {{"--shutdown-timeout", "-1", "x"},
     "--shutdown-timeout '-1': expected a time from 0s to 365d, such as 30, 1.5, 30s, 5m, 2h or "
     "1d"},
    {{"--heartbeat-timeout", "0", "x"},
     "--heartbeat-timeout '0': expected a time from 0.1s to 365d, such as 30, 1.5, 30s, 5m, 2h or "
     "1d"},
    {{"--stall-action", "kill", "x"}, "--stall-action 'kill': expected fail or warn"},
    {{"--hang-timeout", "0.5", "x"},
     "--hang-timeout '0.5': expected auto, off or seconds, at least 1"},
    {{"--preload", "torch,,numpy", "x"},
     "--preload 'torch,,numpy': expected off, auto or names of modules, such as torch,numpy"},
    {{"--preload", "torch,auto", "x"},
     "--preload 'torch,auto': expected off, auto or names of modules, such as torch,numpy"},
    {{"--hang-action", "kill", "x"}, "--hang-action 'kill': expected warn or fail"},
    {{"--rdzv-conf", "ishost=1", "x"},
     "--rdzv-conf 'ishost=1': unknown key; known are is_host, join_timeout, last_call_timeout, "
     "timeout, read_timeout, close_timeout, heartbeat_timeout, keep_alive_interval, "
     "keep_alive_max_attempt, cas_backoff_max_seconds, store_type, use_libuv, rank"},
    {{"--rdzv-conf", "is_host", "x"}, "--rdzv-conf 'is_host': expected KEY=VALUE, KEY=VALUE, ..."},
    {{"--rdzv-conf", "is_host=maybe", "x"},
     "--rdzv-conf 'is_host=maybe': is_host: expected 1, true, 0 or false"},
    {{"--rdzv-conf", "join_timeout=soon", "x"},
     "--rdzv-conf 'join_timeout=soon': join_timeout: expected a time from 1s to 365d, such as 30, "
     "1.5, 30s, 5m, 2h or 1d"},
    {{"--nnodes=2", "--rdzv-conf=is_host=0", "x"},
     "--rdzv-conf is_host=0: nobody else is named who could host; add --rdzv-endpoint HOST"},
    {{"--nnodes=2", "--master-addr=a", "--node-rank=1", "--rdzv-conf=is_host=1", "x"},
     "--rdzv-conf is_host=1 with --node-rank 1: in the static form node rank 0 hosts; leave "
     "is_host "
     "out"},
    {{"--spares", "-1", "x"}, "--spares '-1': expected a number from 0 to 65536"},
    {{"--drain-url", "https://cloud/", "x"},
     "--drain-url 'https://cloud/': expected an http URL with an address as its host, such as "
     "http://169.254.169.254/latest/meta-data/spot/instance-action"},
    {{"--health-interval", "0.01", "x"},
     "--health-interval '0.01': expected 0 for never, or a time from 0.1s to 365d, such as 30, "
     "1.5, 30s, 5m, 2h or 1d"},
    {{"--preflight", "on", "x"}, "--preflight 'on': expected off, quick or full"},
    {{"--end-on", "3,fire", "x"},
     "--end-on '3,fire': 'fire' names no failure; expected words with commas between them: exit "
     "codes from 1 to 255, ranges such as 64-78, signals such as SIGKILL, oom, hang, node or any"},
    {{"--end-on", "any", "--free-on", "75", "x"},
     "--free-on says nothing beside --end-on any, which names all of it: the job ends after that; "
     "leave one of them out"},
    {{"-m", "--no-python", "x"}, "-m runs Python and --no-python runs none: leave one of them out"},
    {{"-v", "-q", "x"}, "-v and -q: leave one of them out"},
    {{"--standalone", "--nnodes=2", "x"},
     "--standalone is for one node and --nnodes says 2: leave one of them out"},
    {{"--nnodes=2", "--node-rank=0", "x"},
     "--node-rank needs the place where the nodes meet: add --master-addr HOST or --rdzv-endpoint "
     "HOST"},
    {{"--nnodes=2", "--node-rank=2", "--master-addr=a", "x"},
     "--node-rank 2: with --nnodes 2 ranks go from 0 to 1"},
    {{"--node-rank=1", "x"},
     "--node-rank 1: the job has one node, of rank 0; --nnodes gives it more"},
    {{"--nnodes=2", "--master-port=29511", "x"},
     "--master-port needs the place where the nodes meet: add --master-addr HOST or "
     "--rdzv-endpoint HOST"},
    {{"--nnodes=2", "--rdzv-backend=static", "x"},
     "--rdzv-backend static needs the place where the nodes meet: add --master-addr HOST"},
    {{"--nnodes=2", "--rdzv-endpoint=localhost:0", "x"},
     "--rdzv-endpoint: several nodes must know the port; write one instead of 0, such as 29400"},
    {{"--nnodes=2", "--master-addr=a", "--master-port=0", "x"},
     "--master-port: several nodes must know the port; write one instead of 0, such as 29500"},
};

INSTANTIATE_TEST_SUITE_P(ParseOptions, WrongOptions, testing::ValuesIn(kBadLines));

}  // namespace
}  // namespace hlaunch
