// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/agent_signals.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <vector>

namespace hlaunch {
namespace {

struct Step {
  int signal;
  SignalRequest request;
  bool counts = true;      // It counts like a key press.
  bool is_ending = false;  // The agent had already begun to end.
};

void Play(const SignalNumbers& named, const std::vector<Step>& steps) {
  SignalRules rules(named);
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    EXPECT_EQ(rules.Take(step.signal, step.counts, step.is_ending), step.request) << "step " << i;
  }
}

TEST(SignalRules, PassesOnWhatAsksForNoEnd) {
  Play({}, {{SIGCHLD, SignalRequest::kReap},
            {SIGUSR1, SignalRequest::kForward},
            {SIGWINCH, SignalRequest::kForward}});
}

TEST(SignalRules, LeavesForEachOfTheFour) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    Play({}, {{signal, SignalRequest::kLeave}});
  }
}

TEST(SignalRules, LeavesForTheNamedOnesOnly) {
  Play({SIGUSR1}, {{SIGTERM, SignalRequest::kForward}, {SIGUSR1, SignalRequest::kLeave}});
}

TEST(SignalRules, KillsOnCtrlCOnceMore) {
  Play({}, {{SIGINT, SignalRequest::kLeave}, {SIGINT, SignalRequest::kKill, true, true}});
  Play({}, {{SIGTERM, SignalRequest::kLeave}, {SIGINT, SignalRequest::kKill, true, true}});
}

TEST(SignalRules, CountsNoSigintThatCameBesideTheKeepers) {
  Play({}, {{SIGINT, SignalRequest::kLeave, false},
            {SIGINT, SignalRequest::kNothing, true, true},
            {SIGINT, SignalRequest::kKill, true, true}});
}

TEST(SignalRules, HearsSigtermOnce) {
  Play({}, {{SIGTERM, SignalRequest::kLeave}, {SIGTERM, SignalRequest::kNothing, true, true}});
}

TEST(SignalRules, KillsOnTheFirstCtrlCWhereTheAgentEndsForAnotherReason) {
  Play({}, {{SIGTERM, SignalRequest::kNothing, true, true},
            {SIGINT, SignalRequest::kKill, true, true}});
}

}  // namespace
}  // namespace hlaunch
