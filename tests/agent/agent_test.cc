// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Tests one real agent with real workers, directed by a real rendezvous in the same process.

#include "agent/agent.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "agent/output/output_relay.h"
#include "agent/workers/process/descendants.h"
#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"
#include "proto/contract/exit_code.h"
#include "rendezvous/job/job_rendezvous.h"
#include "rendezvous/job/local_rendezvous_client.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;

// Runs `script` in /bin/sh as every worker of a job with one node. Output goes to /dev/null; $OUT
// names a file of this test.
class AgentTest : public testing::Test {
 protected:
  AgentTest() {
    BecomeSubreaper();
    sigset_t blocked;
    sigemptyset(&blocked);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGCHLD}) {
      sigaddset(&blocked, signal);
    }
    ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
    info_.job_id = "job";
    info_.node_id = "node";
    info_.incarnation = 1;
    info_.host = "here";
    info_.address = "127.0.0.1";
  }
  ~AgentTest() override { ::unlink(out_.c_str()); }

  AgentResult RunScript(const std::string& script, int nproc, int max_restarts = 0) {
    info_.nproc = nproc;
    info_.policy.max_restarts = max_restarts;
    JobRules rules;
    rules.job_id = "job";
    rules.policy = info_.policy;
    JobRendezvous rendezvous(rules, MonotonicClock());
    LocalRendezvousClient client(rendezvous);
    asio::io_context loop(1);
    const auto relay = OutputRelay::Make(loop, null_.get(), null_.get());
    AgentOptions options;
    options.info = info_;
    options.spec.job_id = "job";
    options.spec.argv = program_.empty() ? std::vector<std::string>{"/bin/sh", "-c", script}
                                         : std::vector<std::string>{program_};
    options.spec.inherited_env = {"PATH=/usr/bin:/bin", absl::StrCat("OUT=", out_)};
    options.spec.nproc = nproc;
    options.spec.stop_grace = grace_;
    options.spec.heartbeat_timeout = heartbeat_timeout_;
    options.spec.hears_boundaries = hears_boundaries_;
    options.spec.signals_to_handle = signals_to_handle_;
    options.store_address = "127.0.0.1";
    options.on_event = on_event_;
    options.time_limit = time_limit_;
    options.health_interval = health_interval_;
    options.check_command = [this](const CheckPlan&) {
      ++checks_;
      return std::vector<std::string>{"/bin/sleep", "600"};
    };
    Agent agent(loop, options, client, **relay);
    asio::steady_timer pause(loop, pause_after_);
    if (pause_after_ > Duration::zero()) {
      pause.async_wait([this](const asio::error_code&) { std::this_thread::sleep_for(pause_); });
    }
    return agent.Run();
  }

  std::string Output() const {
    std::ostringstream text;
    text << std::ifstream(out_).rdbuf();
    return text.str();
  }

  static bool HasNoChild() { return Descendants(::getpid()).empty(); }

  const std::string out_ = absl::StrCat(testing::TempDir(), "agent_test.", ::getpid());
  const UniqueFd null_{::open("/dev/null", O_WRONLY | O_CLOEXEC)};
  std::string program_;
  Duration grace_ = std::chrono::seconds(20);
  Duration heartbeat_timeout_ = Duration::zero();
  bool hears_boundaries_ = false;
  Duration time_limit_ = Duration::zero();
  Duration health_interval_ = Duration::zero();
  int checks_ = 0;                                                      // Checks that were begun.
  Duration pause_after_ = Duration::zero(), pause_ = Duration::zero();  // The loop's thread pauses.
  std::vector<int> signals_to_handle_;
  NodeEventFn on_event_;
  NodeInfo info_;
};

TEST_F(AgentTest, EndsWithSuccessWhenAllWorkersDo) {
  const AgentResult result = RunScript("echo \"$RANK/$WORLD_SIZE\" >> $OUT", 3);
  EXPECT_EQ(result.exit_code, kExitOk);
  ASSERT_TRUE(result.outcome.has_value());
  EXPECT_TRUE(result.outcome->failures.empty());
  const std::string output = Output();
  for (const char* rank : {"0/3", "1/3", "2/3"}) EXPECT_THAT(output, HasSubstr(rank));
}

TEST_F(AgentTest, OnlyRank0SaysWhenACheckpointIsWritten) {
  hears_boundaries_ = true;
  EXPECT_EQ(RunScript("echo \"$RANK:${HLAUNCH_BOUNDARY:+set}.\" >> $OUT", 2).exit_code, kExitOk);
  const std::string output = Output();
  EXPECT_THAT(output, HasSubstr("0:set."));
  EXPECT_THAT(output, HasSubstr("1:."));
}

// A frozen host wakes up, and all timers are due at once.
TEST_F(AgentTest, BeginsNoHealthWatchOnceWorkersAreBeingStopped) {
  health_interval_ = std::chrono::seconds(10);  // The watch begins after 5 s.
  time_limit_ = std::chrono::milliseconds(4900);
  pause_after_ = std::chrono::milliseconds(4500);
  pause_ = std::chrono::seconds(1);
  grace_ = Duration::zero();
  EXPECT_EQ(RunScript("exec sleep 600", 1).exit_code, kExitTimeout);
  EXPECT_EQ(checks_, 0);
}

TEST_F(AgentTest, StopsTheOthersAndNamesTheFirstWhenOneFails) {
  const AgentResult result =
      RunScript("if [ $RANK = 1 ]; then echo broken >&2; exit 7; fi; exec sleep 600", 3);
  EXPECT_EQ(result.exit_code, 7);
  ASSERT_TRUE(result.outcome.has_value());
  ASSERT_EQ(result.outcome->failures.size(), 1u);  // Workers that the agent stopped did not fail.
  EXPECT_EQ(result.outcome->failures[0].rank, 1);
  EXPECT_EQ(result.outcome->failures[0].host, "here");
  EXPECT_NE(result.outcome->failures[0].pid, 0);
  EXPECT_THAT(result.outcome->failures[0].log_tail, HasSubstr("broken"));
  EXPECT_TRUE(HasNoChild());
}

TEST_F(AgentTest, ExitsWith128AndTheSignalThatKilledAWorker) {
  EXPECT_EQ(RunScript("kill -SEGV $$", 1).exit_code, 128 + SIGSEGV);
}

TEST_F(AgentTest, AStalledWorkerHasFailedAndIsToldWithWhereItStood) {
  heartbeat_timeout_ = std::chrono::milliseconds(300);
  const AgentResult result = RunScript(
      R"([ $RANK = 0 ] && exec sleep 600; exec /usr/bin/python3 -c '
import os, socket, time
agent = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
agent.connect("\0" + os.environ["HLAUNCH_HEARTBEAT"][1:])
agent.send(b"heartbeat/1 step=7")
time.sleep(600)')",
      2);
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
  ASSERT_TRUE(result.outcome.has_value());
  ASSERT_EQ(result.outcome->failures.size(), 1u);
  const WorkerFailure& failure = result.outcome->failures[0];
  EXPECT_EQ(failure.rank, 1);
  EXPECT_EQ(failure.kind, FailureKind::kStalled);
  EXPECT_THAT(failure.evidence, HasSubstr("stalled: no heartbeat for "));
  EXPECT_THAT(failure.evidence, HasSubstr(" s (limit 0.3 s), last step 7"));
  EXPECT_TRUE(HasNoChild());
}

TEST_F(AgentTest, PassesOnASignalThatAsksForNoEnd) {
  const AgentResult result =
      RunScript("trap 'exit 5' USR1; kill -USR1 $PPID; while :; do sleep 0.02; done", 1);
  EXPECT_EQ(result.exit_code, 5) << "its own end, not the agent's";
}

TEST_F(AgentTest, EndsTheJobOnAnySignalThatTheUserNamedAndForwardsTheSame) {
  signals_to_handle_ = {SIGTERM, SIGUSR1};
  const AgentResult result = RunScript(
      "trap 'echo told >> $OUT; exit 5' USR1; kill -USR1 $PPID; while :; do sleep 0.02; done", 1);
  EXPECT_EQ(result.exit_code, 128 + SIGUSR1);
  EXPECT_EQ(Output(), "told\n");
  EXPECT_TRUE(HasNoChild());
}

TEST_F(AgentTest, RestartsWithANewStorePortAndCount) {
  const AgentResult result = RunScript(
      "echo \"$TORCHELASTIC_RESTART_COUNT $MASTER_PORT\" >> $OUT; "
      "[ $TORCHELASTIC_RESTART_COUNT = 2 ]",
      1, /*max_restarts=*/2);
  EXPECT_EQ(result.exit_code, kExitOk);
  std::istringstream output(Output());
  int port[3] = {};
  for (int expected = 0, count = -1; expected < 3; ++expected) {
    output >> count >> port[expected];
    EXPECT_EQ(count, expected);
  }
  EXPECT_NE(port[0], port[1]);
  EXPECT_NE(port[1], port[2]);
}

TEST_F(AgentTest, KillsWorkersThatIgnoreSigtermAfterTheGrace) {
  grace_ = std::chrono::milliseconds(50);
  const AgentResult result =
      RunScript("trap '' TERM; if [ $RANK = 0 ]; then exit 3; fi; while :; do sleep 600; done", 2);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_TRUE(HasNoChild());
}

TEST_F(AgentTest, EndsWhatSucceededWorkersLeaveBehind) {
  const AgentResult result = RunScript("setsid sleep 600 & setsid sleep 601 &", 2);
  EXPECT_EQ(result.exit_code, kExitOk);
  EXPECT_TRUE(HasNoChild());
}

TEST_F(AgentTest, EndsThoughItIsInterruptedWhileItLooksAtWhatIsLeft) {
  on_event_ = [](const NodeEvent& event) {
    if (std::holds_alternative<RoundStopped>(event)) ::kill(::getpid(), SIGINT);
  };
  const AgentResult result = RunScript("setsid sleep 600 &", 1);
  EXPECT_EQ(result.exit_code, kExitOk);
  EXPECT_TRUE(HasNoChild());
}

TEST_F(AgentTest, GivesTheTrainerBehindAWrapperTheWholeGrace) {
  // The wrapper ends on SIGTERM at once; its child saves its work first.
  const AgentResult result = RunScript(
      "(trap 'sleep 2.5; echo saved >> $OUT; exit 0' TERM; echo up >> $OUT; "
      "while :; do sleep 0.01; done) & "
      "while ! grep -q up $OUT 2>/dev/null; do sleep 0.01; done; exit 3",
      1);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(Output(), HasSubstr("saved"));
  EXPECT_TRUE(HasNoChild());
}

TEST_F(AgentTest, DoesNotAwaitProcessesInSessionsOfTheirOwnOnceNoWorkerLives) {
  grace_ = std::chrono::minutes(30);
  const AgentResult result = RunScript(
      "setsid sh -c \"trap '' TERM; echo up >> $OUT; while :; do sleep 1; done\" & "
      "while ! grep -q up $OUT 2>/dev/null; do sleep 0.01; done; exit 3",
      1);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_TRUE(HasNoChild());
}

TEST_F(AgentTest, EndsBackgroundProcessesThatIgnoreTheInterruptThatEndedTheWorker) {
  grace_ = std::chrono::minutes(30);
  const AgentResult result = RunScript(
      absl::StrCat("trap 'exit 0' INT; sleep 3000 & kill -INT ", ::getpid(), "; wait"), 1);
  EXPECT_EQ(result.exit_code, 128 + SIGINT);
  EXPECT_TRUE(HasNoChild());
}

TEST_F(AgentTest, ReportsAProgramThatCannotBeRun) {
  program_ = "/no/such/program";
  const AgentResult result = RunScript("", 2);
  EXPECT_EQ(result.exit_code, kExitNotFound);
  ASSERT_EQ(result.outcome->failures.size(), 1u);
  EXPECT_EQ(result.outcome->failures[0].pid, 0);
  EXPECT_THAT(result.outcome->failures[0].message, HasSubstr("/no/such/program"));
}

TEST_F(AgentTest, LeavesWith128AndTheSignalItGot) {
  // The first worker sends SIGTERM to the agent once all workers can receive it.
  const std::string script =
      absl::StrCat("trap 'echo heard $RANK >> $OUT; exit 0' TERM; [ $RANK = 0 ] && kill -TERM ",
                   ::getpid(), "; while :; do sleep 0.01; done");
  const AgentResult result = RunScript(script, 1);
  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  EXPECT_EQ(Output(), "heard 0\n");
  EXPECT_TRUE(HasNoChild());
}

// Gives the test's directives, one for each update that it gets.
class ScriptedClient final : public RendezvousClient {
 public:
  explicit ScriptedClient(std::vector<Directive> directives) : directives_(std::move(directives)) {}
  void Join(const NodeInfo&, const NodeUpdate& update, Listener* listener) override {
    listener_ = listener;
    Send(update);
  }
  void Send(const NodeUpdate& update) override {
    if (update.phase == NodePhase::kRunning && update.workers_lost.empty()) return;
    updates.push_back(update);
    if (updates.size() <= directives_.size())
      listener_->OnDirective(directives_[updates.size() - 1]);
  }
  void Answer(NodeAnswer) override {}
  void Tell(RoundWord) override {}
  Allowance AllowanceNow(Instant now) const override {
    if (!limit_workers) return {};
    if (!cut_off) return {Instant::max(), now + std::chrono::milliseconds(600)};
    // Nothing was heard for 5 s, where the loss limit is 5 s: the workers' time is over.
    return {now, now};
  }
  std::vector<NodeUpdate> updates;
  bool limit_workers = false;  // Other nodes could take over.
  bool cut_off = false;

 private:
  const std::vector<Directive> directives_;
  Listener* listener_ = nullptr;
};

TEST_F(AgentTest, AnswersAStopWhoseStartWasOvertakenWithoutOldFailures) {
  Directive run;
  run.kind = Directive::Kind::kRun;
  run.assignment.round = 1;
  run.assignment.master_addr = "127.0.0.1";
  Directive stop;
  stop.kind = Directive::Kind::kStop;
  stop.round = 1;
  Directive stop_overtaking = stop;
  stop_overtaking.round = 2;
  Directive finish;
  finish.kind = Directive::Kind::kFinish;
  ScriptedClient client({run, stop, stop_overtaking, finish});

  asio::io_context loop(1);
  const auto relay = OutputRelay::Make(loop, null_.get(), null_.get());
  AgentOptions options;
  options.info = info_;
  options.spec.argv = {"/bin/false"};
  options.store_address = "127.0.0.1";
  Agent(loop, options, client, **relay).Run();

  ASSERT_EQ(client.updates.size(), 5u);  // Ready, failed, ready, ready again, finished.
  EXPECT_EQ(client.updates[2].round, 1);
  EXPECT_EQ(client.updates[2].failures.size(), 1u);
  EXPECT_EQ(client.updates[3].round, 2);
  EXPECT_EQ(client.updates[3].phase, NodePhase::kReady);
  EXPECT_TRUE(client.updates[3].failures.empty());
}

TEST_F(AgentTest, TellsThatItEndedItsWorkersBecauseItHeardNothing) {
  Directive run;
  run.kind = Directive::Kind::kRun;
  run.assignment.round = 1;
  run.assignment.master_addr = "127.0.0.1";
  Directive stop;
  stop.kind = Directive::Kind::kStop;
  stop.round = 1;
  Directive finish;
  finish.kind = Directive::Kind::kFinish;
  ScriptedClient client({run, stop, finish});

  asio::io_context loop(1);
  const auto relay = OutputRelay::Make(loop, null_.get(), null_.get());
  AgentOptions options;
  options.info = info_;
  options.info.policy.lease.loss_limit = std::chrono::seconds(5);
  options.spec.argv = {"/bin/sleep", "600"};
  options.store_address = "127.0.0.1";
  options.show_life = [&client](Instant) {
    client.cut_off = true;
  };  // Once the workers have begun.
  client.limit_workers = true;
  Agent(loop, options, client, **relay).Run();

  ASSERT_EQ(client.updates.size(), 4u);  // Ready, its workers are lost, ready, finished.
  EXPECT_EQ(client.updates[1].phase, NodePhase::kRunning);
  EXPECT_EQ(client.updates[1].workers_lost,
            "its agent ended the workers: nothing heard from the rendezvous for 5 s");
  EXPECT_TRUE(client.updates[1].failures.empty());
  EXPECT_EQ(client.updates[2].phase, NodePhase::kReady);
  EXPECT_EQ(client.updates[2].workers_lost, "");
  EXPECT_TRUE(HasNoChild());
}

TEST_F(AgentTest, SaysThatItWasStoppedThoughAnotherNodeWasStoppedFirst) {
  Directive run;
  run.kind = Directive::Kind::kRun;
  run.assignment.round = 1;
  run.assignment.world_size = 2;
  run.assignment.master_addr = "127.0.0.1";
  Directive finish;
  finish.kind = Directive::Kind::kFinish;
  finish.outcome.exit_code = kExitNodeStopped;
  finish.outcome.reason = "node other was stopped by SIGTERM";
  ScriptedClient client({run, finish});  // `finish` answers rank 1's failure.

  asio::io_context loop(1);
  const auto relay = OutputRelay::Make(loop, null_.get(), null_.get());
  AgentOptions options;
  options.info = info_;
  options.spec.nproc = options.info.nproc = 2;
  options.spec.stop_grace = grace_;
  options.spec.argv = {
      "/bin/sh", "-c",
      absl::StrCat("if [ $RANK = 1 ]; then while ! [ -e $OUT ]; do sleep 0.01; done; exit 3; fi; "
                   "trap 'kill -TERM ",
                   ::getpid(), "; exit 0' TERM; echo up > $OUT; while :; do sleep 0.01; done")};
  options.spec.inherited_env = {"PATH=/usr/bin:/bin", absl::StrCat("OUT=", out_)};
  options.store_address = "127.0.0.1";
  const AgentResult result = Agent(loop, options, client, **relay).Run();

  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  EXPECT_EQ(result.outcome->exit_code, 128 + SIGTERM);
  EXPECT_EQ(result.outcome->reason, "node other was stopped by SIGTERM");
  EXPECT_TRUE(HasNoChild());
}

}  // namespace
}  // namespace hlaunch
