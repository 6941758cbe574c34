// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/observe/node_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace hlaunch {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

constexpr Instant kNow{};

std::string After(const std::vector<NodeEvent>& events) {
  NodeMetrics metrics("job", "node0");
  for (const NodeEvent& event : events) metrics.Count(event, kNow);
  return metrics.Text(42, kNow + seconds(3));
}

TEST(NodeMetrics, BeginsWithANodeThatForms) {
  const std::string text = After({});
  EXPECT_THAT(text, HasSubstr("hlaunch_state{state=\"forming\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("hlaunch_state{state=\"running\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("hlaunch_info{job_id=\"job\",host=\"node0\",node_rank=\"\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("hlaunch_output_bytes_total 42\n"));
  EXPECT_THAT(text, HasSubstr("hlaunch_rendezvous_connected 0\n"));
}

TEST(NodeMetrics, CountsWorkersAndTheFailedOnesAmongThem) {
  const std::string text = After({
      NodeJoined{},
      WorkerStarted{1, 0, 0, 10},
      WorkerStarted{1, 1, 1, 11},
      WorkerStarted{1, 2, 2, 12},
      WorkerStarted{1, 3, 3, 13},
      WorkerStalled{1, 0, 0, 10, "no heartbeat"},
      HealthChanged{1, "heat", true, "at the critical limit"},
      HealthChanged{1, "heat", false, "as at first again"},
      WorkerEnded{1, 0, 0, 10, 3, 0, false},
      WorkerEnded{1, 1, 1, 11, 0, 15, true},
      WorkerEnded{1, 2, 2, 12, 0, 0, false},
  });
  EXPECT_THAT(text, HasSubstr("hlaunch_workers_running 1\n"));
  EXPECT_THAT(text, HasSubstr("hlaunch_workers_started_total 4\n"));
  EXPECT_THAT(text, HasSubstr("hlaunch_worker_failures_total 1\n"));
  EXPECT_THAT(text, HasSubstr("hlaunch_worker_stalls_total 1\n"));
  EXPECT_THAT(text, HasSubstr("hlaunch_health_warnings_total 1\n"));
  EXPECT_THAT(text, HasSubstr("hlaunch_rendezvous_connected 1\n"));
}

TEST(NodeMetrics, FollowsTheRound) {
  RoundStarted started;
  started.assignment.round = 2;
  started.assignment.restart_count = 1;
  started.assignment.world_size = 8;
  started.assignment.node_rank = 1;
  EXPECT_THAT(After({started}), HasSubstr("hlaunch_state{state=\"running\"} 1\n"));
  const std::string text = After({started, RoundStopped{2, "rank 3 failed"}});
  EXPECT_THAT(text, HasSubstr("hlaunch_state{state=\"stopping\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("hlaunch_round 2\n"));
  EXPECT_THAT(text, HasSubstr("hlaunch_restarts_total 1\n"));
  EXPECT_THAT(text, HasSubstr("hlaunch_world_size 8\n"));
  EXPECT_THAT(text, HasSubstr("node_rank=\"1\""));
}

TEST(NodeMetrics, HasTheLastValueOfEachNameAndRankOfTheRound) {
  const std::string text = After({
      LogValue{1, 0, "loss", 0.5},
      LogValue{1, 0, "loss", 0.25},
      LogValue{1, 3, "loss", std::numeric_limits<double>::quiet_NaN()},
      LogValue{1, 0, "step", 12},
  });
  EXPECT_THAT(text, HasSubstr("# TYPE hlaunch_log_value gauge\n"
                              "hlaunch_log_value{name=\"loss\",rank=\"0\"} 0.25\n"
                              "hlaunch_log_value{name=\"loss\",rank=\"3\"} NaN\n"
                              "hlaunch_log_value{name=\"step\",rank=\"0\"} 12\n"));
  EXPECT_THAT(After({LogValue{1, 0, "loss", 0.5}, RoundStarted{}}),
              Not(HasSubstr("hlaunch_log_value")));
}

TEST(NodeMetrics, HasTheSlowRanksOfTheRoundAndTheTimeThatIsLost) {
  const SlowRanksFound slow = {1, {2, 3}, 0.25, "slow"};
  const TimeLost lost = {1, std::chrono::milliseconds(1500), std::chrono::seconds(4)};
  const std::string text = After({slow, lost});
  EXPECT_THAT(text, HasSubstr("hlaunch_slow_ranks 2\n"));
  EXPECT_THAT(text, HasSubstr("hlaunch_lost_seconds{cause=\"slowest_rank\"} 1.5\n"
                              "hlaunch_lost_seconds{cause=\"checkpoints\"} 4\n"));
  EXPECT_THAT(After({slow, SlowRanksFound{1, {2, 3}, 0, "over"}}),
              HasSubstr("hlaunch_slow_ranks 0\n"));
  EXPECT_THAT(After({slow, lost, RoundStarted{}}),
              HasSubstr("hlaunch_lost_seconds{cause=\"slowest_rank\"} 0\n"));
}

TEST(NodeMetrics, TellsHowLongTheRendezvousIsSilent) {
  const ContactChanged lost{false, "node0 does not answer"};
  const ContactChanged found{true, ""};
  EXPECT_THAT(After({NodeJoined{}}), HasSubstr("hlaunch_rendezvous_silence_seconds 0\n"));
  EXPECT_THAT(After({NodeJoined{}, lost}), HasSubstr("hlaunch_rendezvous_silence_seconds 3\n"));
  EXPECT_THAT(After({NodeJoined{}, lost, found}),
              HasSubstr("hlaunch_rendezvous_silence_seconds 0\n"));
}

TEST(NodeMetrics, EscapesWhatNamesMayHold) {
  const NodeMetrics metrics("a\"b\\c\nd", "node0");
  EXPECT_THAT(metrics.Text(0, kNow), HasSubstr("job_id=\"a\\\"b\\\\c\\nd\""));
}

}  // namespace
}  // namespace hlaunch
