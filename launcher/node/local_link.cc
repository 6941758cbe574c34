// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/node/node_link.h"
#include "rendezvous/job/local_rendezvous_client.h"

namespace hlaunch {
namespace {

class LocalLink final : public NodeLink {
 public:
  explicit LocalLink(JobRules rules)
      : rendezvous_(std::move(rules), MonotonicClock()), client_(rendezvous_) {}

  RendezvousClient& client() override { return client_; }
  bool hosts() const override { return true; }
  std::string Belief(Duration) const override { return ""; }
  uint16_t shared_store_port() const override { return 0; }
  bool port_was_taken() const override { return false; }
  std::optional<JobStatus> Status() const override { return rendezvous_.Status(); }
  absl::Status Ask(const RankQuestion& question, std::function<void(JobAnswer)> done) override {
    return rendezvous_.Ask(question, std::move(done)).status();
  }
  void End(const Outcome&) override {}  // The only node has left already.
  std::vector<std::string> AwaitOthers(Instant) override { return {}; }
  DeathReport death_report(const NodeInfo&) const override { return {}; }

 private:
  JobRendezvous rendezvous_;
  LocalRendezvousClient client_;
};

}  // namespace

JobRules RulesOf(const JobSpec& spec) {
  JobRules rules;
  rules.job_id = spec.job_id;
  rules.policy = spec.policy;
  rules.set_by = "the host of the rendezvous";
  return rules;
}

std::unique_ptr<NodeLink> MakeLocalLink(const JobSpec& spec) {
  return std::make_unique<LocalLink>(RulesOf(spec));
}

}  // namespace hlaunch
