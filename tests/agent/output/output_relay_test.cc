// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/output/output_relay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <functional>
#include <map>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/agent/child.h"

namespace hlaunch {
namespace {

// A relay whose sink is a pipe that the test reads.
class OutputRelayTest : public ::testing::Test {
 protected:
  OutputRelayTest() {
    int ends[2];
    HLAUNCH_CHECK(::pipe2(ends, O_CLOEXEC) == 0);
    source_ = UniqueFd(ends[0]);
    sink_ = UniqueFd(ends[1]);
    ::fcntl(source_.get(), F_SETFL, O_NONBLOCK);
    MakeRelay(Folding::kOnTerminal);
  }

  void MakeRelay(Folding folding, Duration patience = std::chrono::hours(1)) {
    relay_ = OutputRelay::Make(loop_, sink_.get(), sink_.get(), folding, patience).value();
  }

  static Instant Deadline() { return MonotonicClock().Now() + kPatience; }

  static WorkerRoutes Prefixed(std::string prefix) {
    WorkerRoutes routes;
    routes.prefix = std::move(prefix);
    return routes;
  }

  WorkerOutput Open(int worker, const std::string& prefix) {
    WorkerOutput output = relay_->Open(worker, Prefixed(prefix)).value();
    ::fcntl(output.out.get(), F_SETFL, O_NONBLOCK);
    ::fcntl(output.err.get(), F_SETFL, O_NONBLOCK);
    return output;
  }

  // Makes a relay that folds, and workers of the ranks 0 … n - 1.
  std::vector<WorkerOutput> OpenFolded(int n, Duration patience = std::chrono::hours(1)) {
    MakeRelay(Folding::kAlways, patience);
    std::vector<WorkerOutput> outputs;
    for (int rank = 0; rank < n; ++rank) {
      WorkerRoutes routes = Prefixed(absl::StrCat("[", rank, "] "));
      routes.rank = rank;
      outputs.push_back(relay_->Open(rank, routes).value());
    }
    return outputs;
  }

  static void Write(const UniqueFd& fd, absl::string_view text) {
    ASSERT_EQ(::write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  // Returns what has come to the sink once the relay has done all it can.
  std::string Printed() {
    std::string text;
    do {
      loop_.restart();
    } while (loop_.poll() > 0);
    EXPECT_TRUE(relay_->Flush(Deadline()));
    return text + ReadSink();
  }
  std::string ReadSink() {
    char buffer[65536];
    std::string text;
    for (ssize_t n; (n = ::read(source_.get(), buffer, sizeof(buffer))) > 0;) {
      text.append(buffer, static_cast<size_t>(n));
    }
    return text;
  }

  // Reads the sink on a thread while the relay works, until `enough` is true.
  std::string Collect(const std::function<bool(const std::string&)>& enough) {
    std::string text;
    bool done = false;
    std::thread reader([&] {
      while (Readable(source_.get())) {
        text += ReadSink();
        if (enough(text)) break;
      }
      asio::post(loop_, [&] { done = true; });
    });
    while (!done) {
      loop_.restart();
      loop_.run_one_for(kPatience);
    }
    reader.join();
    return text;
  }

  // Writes at most `most` bytes to `fd`, until neither it nor the relay takes more.
  size_t WriteAll(const UniqueFd& fd, size_t most) {
    const std::string block(4096, 'x');
    size_t written = 0;
    // The kernel wakes a pipe's reader even for a refused write, so one turn of the loop proves
    // nothing. A relay that reads makes room within one turn.
    for (int refused = 0; written < most && refused < 10;) {
      const ssize_t n = ::write(fd.get(), block.data(), block.size());
      if (n > 0) {
        written += static_cast<size_t>(n);
        refused = 0;
        continue;
      }
      ++refused;
      loop_.restart();
      loop_.poll();
    }
    return written;
  }

  asio::io_context loop_;
  UniqueFd source_;
  UniqueFd sink_;
  std::unique_ptr<OutputRelay> relay_;
};

TEST_F(OutputRelayTest, NeverMixesLines) {
  WorkerOutput zero = Open(0, "[0] ");
  WorkerOutput one = Open(1, "[1] ");
  Write(zero.out, "ze");
  Write(one.out, "one\non");
  EXPECT_EQ(Printed(), "[1] one\n");
  Write(zero.out, "ro\n");
  Write(one.err, "error\n");
  const std::string text = Printed();
  EXPECT_THAT(text, ::testing::HasSubstr("[0] zero\n"));
  EXPECT_THAT(text, ::testing::HasSubstr("[1] error\n"));
  one.out.Close();
  EXPECT_EQ(Printed(), "[1] on\n");
}

TEST_F(OutputRelayTest, WithoutAPrefixLinesAreWholeWhereTheyAreToBe) {
  WorkerRoutes plain;
  plain.whole_lines = true;
  const WorkerOutput zero = relay_->Open(0, plain).value();
  const WorkerOutput one = relay_->Open(1, plain).value();
  Write(zero.out, "ze");
  Write(one.out, "one\n");
  EXPECT_EQ(Printed(), "one\n");
  Write(zero.out, "ro\n");
  EXPECT_EQ(Printed(), "zero\n");
}

TEST_F(OutputRelayTest, WithoutAPrefixTheLastLineOfAllGetsNoEnd) {
  WorkerRoutes plain;
  plain.whole_lines = true;
  const WorkerOutput zero = relay_->Open(0, plain).value();
  const WorkerOutput one = relay_->Open(1, plain).value();
  Write(zero.out, "zero");
  Write(one.out, "one");
  relay_->Close(0);
  EXPECT_EQ(Printed(), "zero");
  relay_->Close(1);
  EXPECT_EQ(Printed(), "\none");
}

TEST_F(OutputRelayTest, PrefixesSayTheStreamAndTheTime) {
  const WorkerOutput worker = Open(0, "${time} <${stream}> ");
  Write(worker.out, "a\n");
  EXPECT_THAT(Printed(), ::testing::MatchesRegex("20..-..-..T..:..:......Z <stdout> a\n"));
  Write(worker.err, "b");
  relay_->Close(0);
  EXPECT_THAT(Printed(), ::testing::MatchesRegex("20..-..-..T..:..:......Z <stderr> b\n"));
}

TEST_F(OutputRelayTest, MergesStderrIntoStdout) {
  relay_ = OutputRelay::Make(loop_, sink_.get(), /*err_fd=*/-1).value();
  WorkerRoutes routes = Prefixed("[0] ");
  routes.merge_stderr = true;
  const WorkerOutput worker = relay_->Open(0, routes).value();
  Write(worker.err, "error\n");
  EXPECT_EQ(Printed(), "[0] error\n");
}

TEST_F(OutputRelayTest, KeepsTheEndOfStderr) {
  WorkerOutput zero = Open(0, "[0] ");
  Write(zero.out, "not this\n");
  Write(zero.err, "Traceback\nValueError: no\n");
  Printed();
  EXPECT_EQ(relay_->Tail(0), "Traceback\nValueError: no");
  EXPECT_EQ(relay_->Tail(7), "");
  relay_->Close(0);
  EXPECT_EQ(relay_->Tail(0), "Traceback\nValueError: no");
  Open(0, "[0] ");
  EXPECT_EQ(relay_->Tail(0), "") << "a new round";
}

TEST_F(OutputRelayTest, StopsReadingWhileTheSinkBlocks) {
  constexpr size_t kMuch = 64 << 20;
  WorkerOutput zero = Open(0, "");
  const size_t taken = WriteAll(zero.out, kMuch);
  EXPECT_LT(taken, size_t{4} << 20);
  // The relay goes on where it stopped, and nothing is lost.
  EXPECT_EQ(Collect([&](const std::string& text) { return text.size() >= taken; }),
            std::string(taken, 'x'));
  Write(zero.out, "again\n");
  EXPECT_EQ(Collect([](const std::string& text) { return text.size() >= 6; }), "again\n");
}

TEST_F(OutputRelayTest, DrainsWorkersThoughTheSinkIsClosed) {
  WorkerOutput zero = Open(0, "[0] ");
  source_.Close();
  size_t written = 0;
  while (written < (size_t{8} << 20)) {
    const size_t n = WriteAll(zero.out, 1 << 20);
    written += n;
    if (n > 0) continue;
    loop_.restart();
    ASSERT_GT(loop_.run_one_for(kPatience), 0u) << "stuck after " << written;
  }
  EXPECT_TRUE(relay_->Flush(Deadline()));
}

TEST_F(OutputRelayTest, GoesWhileTheSinkBlocks) {
  WorkerOutput zero = Open(0, "");
  WriteAll(zero.out, 64 << 20);
  ASSERT_TRUE(Readable(source_.get())) << "it is writing";
  EXPECT_FALSE(relay_->Flush(MonotonicClock().Now()));
  relay_.reset();
  // The abandoned thread still writes to them.
  sink_.Release();
  source_.Release();
}

TEST_F(OutputRelayTest, DoesNotWaitForAGrandchildThatHoldsThePipe) {
  WorkerOutput zero = Open(0, "[0] ");
  const std::string script = "sleep 1000 & printf oops >&2; exit 1";
  Process worker = Process::Spawn({.argv = {"/bin/sh", "-c", script},
                                   .env = OurEnvironment(),
                                   .stdout_fd = zero.out.get(),
                                   .stderr_fd = zero.err.get()})
                       .value();
  zero = {};
  ASSERT_TRUE(Readable(worker.pidfd()));
  relay_->Drain(0);
  EXPECT_EQ(relay_->Tail(0), "oops");
  relay_->Close(0);
  EXPECT_EQ(Printed(), "[0] oops\n");
  worker.SignalGroup(SIGKILL);
  EXPECT_EQ(worker.Reap().exit_code, 1);
}

// 16 writers while the sink is read: every line comes whole, and the lines of each worker in order.
TEST_F(OutputRelayTest, KeepsOrderUnderLoad) {
  constexpr int kWorkers = 16;
  constexpr int kLines = 2000;
  std::vector<Process> workers;
  for (int i = 0; i < kWorkers; ++i) {
    WorkerOutput output = relay_->Open(i, Prefixed(absl::StrCat("[", i, "] "))).value();
    workers.push_back(Process::Spawn({.argv = {"/usr/bin/seq", absl::StrCat(kLines)},
                                      .stdout_fd = output.out.get(),
                                      .stderr_fd = output.err.get()})
                          .value());
  }
  const std::string text = Collect([](const std::string& seen) {
    return std::count(seen.begin(), seen.end(), '\n') == kWorkers * kLines;
  });
  std::map<int, int> next;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    int worker = -1;
    int number = 0;
    ASSERT_EQ(std::sscanf(std::string(line).c_str(), "[%d] %d", &worker, &number), 2) << line;
    ASSERT_EQ(number, ++next[worker]) << line;
  }
  for (Process& worker : workers) {
    ASSERT_TRUE(Readable(worker.pidfd()));
    EXPECT_EQ(worker.Reap().exit_code, 0);
  }
}

TEST_F(OutputRelayTest, FoldsWhatSeveralWorkersSay) {
  const std::vector<WorkerOutput> outputs = OpenFolded(3);
  for (const WorkerOutput& output : outputs) Write(output.out, "all\n");
  Write(outputs[1].out, "one\nun");
  EXPECT_EQ(Printed(), "[0-2] all\n[1] one\n");
  Write(outputs[1].out, "ended");
  for (int rank = 0; rank < 3; ++rank) relay_->Close(rank);
  EXPECT_EQ(Printed(), "[1] unended\n");
}

TEST_F(OutputRelayTest, AFoldedLineIsShownAfterAMomentThoughNothingFollows) {
  const std::vector<WorkerOutput> outputs = OpenFolded(2);
  Write(outputs[0].out, "a\n");
  EXPECT_EQ(Collect([](const std::string& text) { return text == "[0] a\n"; }), "[0] a\n");
}

TEST_F(OutputRelayTest, ALineWithoutAnEndIsShownAfterAMomentAndContinued) {
  MakeRelay(Folding::kOnTerminal, std::chrono::milliseconds(1));
  const WorkerOutput zero = Open(0, "[0] ");
  const WorkerOutput one = Open(1, "[1] ");
  Write(zero.out, "name? ");
  EXPECT_EQ(Collect([](const std::string& text) { return text == "[0] name? "; }), "[0] name? ");
  Write(zero.out, "Eve\nmore? ");
  const std::string more = "Eve\n[0] more? ";
  EXPECT_EQ(Collect([&](const std::string& text) { return text == more; }), more);
  Write(one.out, "one\n");
  const std::string whole = "\n[1] one\n";
  EXPECT_EQ(Collect([&](const std::string& text) { return text == whole; }), whole);
  Write(zero.out, "no\n");
  EXPECT_EQ(Printed(), "[0] more? no\n");
}

TEST_F(OutputRelayTest, ALineWithoutAnEndIsShownWhereLinesAreFolded) {
  const std::vector<WorkerOutput> outputs = OpenFolded(2, std::chrono::milliseconds(1));
  Write(outputs[0].out, "name? ");
  EXPECT_EQ(Collect([](const std::string& text) { return text == "[0] name? "; }), "[0] name? ");
  Write(outputs[0].out, "Eve\n");
  EXPECT_EQ(Printed(), "Eve\n");
}

TEST_F(OutputRelayTest, ABarIsNotFoldedAndWhatWasHeldStandsBeforeIt) {
  const std::vector<WorkerOutput> outputs = OpenFolded(2);
  Write(outputs[0].out, "a\nb");
  loop_.poll();
  Write(outputs[0].out, "c\r10%\r");
  Write(outputs[0].out, "20%\n");
  EXPECT_EQ(Printed(), "[0] a\n[0] bc\r[0] 10%\r[0] 20%\n");
}

}  // namespace
}  // namespace hlaunch
