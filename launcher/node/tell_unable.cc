// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/node/tell_unable.h"

#include <memory>

#include "absl/base/thread_annotations.h"
#include "agent/workers/worker/taken_signals.h"
#include "launcher/node/node_identity.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"

namespace hlaunch {
namespace {

constexpr Duration kPatience = std::chrono::seconds(3);
constexpr Duration kStep = std::chrono::milliseconds(50);  // Between two checks for Ctrl-C.

// Waits for an answer of the rendezvous to this node.
//
// Thread-safe.
class Echo final : public RendezvousClient::Listener {
 public:
  void OnDirective(const Directive& /*directive*/) override { Hear(); }
  void OnContact(bool /*connected*/, const std::string& /*detail*/) override {}
  void OnEnd(const absl::Status& /*status*/) override { Hear(); }

  // Waits for an answer until `deadline`; returns whether there was one.
  bool Await(Instant deadline) {
    MutexLock lock(&mu_);
    while (!heard_ && changed_.WaitUntil(&mu_, deadline)) {
    }
    return heard_;
  }

 private:
  void Hear() {
    MutexLock lock(&mu_);
    heard_ = true;
    changed_.SignalAll();
  }

  Mutex mu_;
  CondVar changed_;
  bool heard_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace

void TellUnable(const JobSpec& meeting, const Options& options, const ConnectFn& connect,
                const std::string& reason, int exit_code) {
  // With kListenAndPrint no other node can know this node's address yet: it would have to print it
  // first.
  if (!connect || !NeedsGrpc(meeting) || meeting.mode == JobMode::kListenAndPrint) return;
  const Instant deadline = MonotonicClock().Now() + kPatience;
  absl::StatusOr<std::unique_ptr<NodeLink>> link = connect(meeting, options);
  if (!link.ok()) return;
  const HostSlot slot(meeting.job_id);
  NodeUpdate update;
  update.phase = NodePhase::kLeft;
  update.left_reason = reason;
  update.left_exit_code = exit_code;
  Echo echo;
  (*link)->client().Join(MakeNodeInfo(meeting, **link, slot, ""), update, &echo);
  while (MonotonicClock().Now() < deadline && !TerminationPending()) {
    const bool told = echo.Await(MonotonicClock().Now() + kStep);
    if (told && !(*link)->hosts()) break;
  }
  link->reset();  // Before `echo` is destroyed, because the link calls it.
}

}  // namespace hlaunch
