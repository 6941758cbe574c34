// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/link/host_client.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "launcher/node/host_end.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "rendezvous/round/values/lease.h"

namespace hlaunch {

// Forwards what the local client hears. An end because another node leads is none for the agent.
class HostClient::LocalEar : public Listener {
 public:
  LocalEar(HostClient& owner, Listener* listener) : owner_(owner), listener_(listener) {}

  void OnDirective(const Directive& directive) override { listener_->OnDirective(directive); }
  void OnQuestion(const NodeQuestion& question) override { listener_->OnQuestion(question); }
  void OnWord(const RoundWord& word) override { listener_->OnWord(word); }
  void OnContact(bool connected, const std::string& detail) override {
    listener_->OnContact(connected, detail);
  }
  void OnEnd(const absl::Status& status) override {
    if (absl::IsUnavailable(status)) return owner_.Leave();
    listener_->OnEnd(status);
  }

 private:
  HostClient& owner_;
  Listener* const listener_;
};

HostClient::HostClient(Options options)
    : options_(std::move(options)),
      led_at_(MonotonicClock().Now()),
      looked_at_(led_at_),
      local_(std::make_shared<LocalRendezvousClient>(*options_.job)) {
  thread_ = std::thread([this] {
    ::pthread_setname_np(::pthread_self(), "host-client");
    Run();
  });
}

HostClient::~HostClient() {
  {
    MutexLock lock(&mu_);
    stop_ = true;
    changed_.SignalAll();
  }
  thread_.join();
  std::shared_ptr<LocalRendezvousClient> local;  // Both end outside the lock: they call back.
  std::shared_ptr<GrpcRendezvousClient> remote;
  MutexLock lock(&mu_);
  local.swap(local_);
  remote.swap(remote_);
}

void HostClient::Leave() {
  MutexLock lock(&mu_);
  leaves_ = true;
  changed_.SignalAll();
}

void HostClient::LedBy(const VoterMembers& places) {
  std::shared_ptr<GrpcRendezvousClient> remote;
  {
    MutexLock lock(&mu_);
    remote = remote_;
  }
  if (remote != nullptr) remote->LedBy(places);
}

void HostClient::Run() {
  if (AwaitLeave()) JoinRemote();
}

// Returns false if the client ends before that. Notices when this process has stood still: it may
// then ask the new leader for a while, as any node.
bool HostClient::AwaitLeave() {
  while (true) {
    const Instant now = MonotonicClock().Now();
    const bool leads = options_.job->CheckLeads().ok();
    MutexLock lock(&mu_);
    if (leads) led_at_ = std::max(led_at_, now);
    const Lease lease = info_ ? info_->policy.lease : Lease();
    if (now - looked_at_ >= lease.lease / 2) {
      forgiven_until_ =
          ForgivenUntil(lease, led_at_, forgiven_until_, looked_at_ + lease.lease / 4, now);
    }
    looked_at_ = now;
    if (stop_) return false;
    if (leaves_ && info_) return true;
    changed_.WaitUntil(&mu_, now + lease.lease / 4);
  }
}

void HostClient::JoinRemote() {
  std::shared_ptr<LocalRendezvousClient> local;
  {
    MutexLock lock(&mu_);
    local = std::move(local_);
    local_ = nullptr;
  }
  // A thread inside a call holds a reference too; then that thread destroys the client.
  std::weak_ptr<LocalRendezvousClient> gone = local;
  local.reset();
  NodeInfo info;
  NodeUpdate update;
  Listener* listener = nullptr;
  uint64_t version = 0;
  GrpcRendezvousClient::Options options = options_.remote();
  {
    MutexLock lock(&mu_);
    while (!stop_ && !gone.expired()) {
      changed_.WaitUntil(&mu_, MonotonicClock().Now() + std::chrono::milliseconds(10));
    }
    if (stop_) return;
    info = *info_;
    update = latest_;
    version = version_;
    listener = listener_;
    if (info.policy.max_nodes > 1 && update.round > 0) {
      options.taken_up = {info.policy.lease, led_at_, options_.voters(), forgiven_until_};
    }
  }
  auto remote = std::make_shared<GrpcRendezvousClient>(std::move(options));
  remote->Join(info, update, listener);
  MutexLock lock(&mu_);
  remote_ = std::move(remote);
  if (version_ != version) remote_->Send(latest_);
}

std::shared_ptr<RendezvousClient> HostClient::client() const {
  MutexLock lock(&mu_);
  if (remote_ != nullptr) return remote_;
  return local_;
}

void HostClient::Join(const NodeInfo& info, const NodeUpdate& update, Listener* listener) {
  std::shared_ptr<LocalRendezvousClient> local;
  {
    MutexLock lock(&mu_);
    ear_ = std::make_unique<LocalEar>(*this, listener);
    info_ = info;
    latest_ = update;
    listener_ = listener;
    local = local_;
    changed_.SignalAll();
  }
  if (local != nullptr) local->Join(info, update, ear_.get());
}

void HostClient::Send(const NodeUpdate& update) {
  bool local = false;
  {
    MutexLock lock(&mu_);
    latest_ = update;
    ++version_;
    local = local_ != nullptr;
  }
  const bool leaves = update.phase == NodePhase::kLeft && !EndsWithHost(update.left_exit_code);
  const bool goes_on = options_.job->state() != JobState::kOver;
  if (local && leaves && goes_on && options_.outlived()) return;
  if (const auto client = this->client()) client->Send(update);
}

void HostClient::Answer(NodeAnswer answer) {
  if (const auto client = this->client()) client->Answer(std::move(answer));
}

void HostClient::Tell(RoundWord word) {
  if (const auto client = this->client()) client->Tell(std::move(word));
}

Allowance HostClient::AllowanceNow(Instant now) const {
  std::shared_ptr<GrpcRendezvousClient> remote;
  {
    MutexLock lock(&mu_);
    remote = remote_;
  }
  if (remote != nullptr) return remote->AllowanceNow(now);
  const bool leads = options_.job->CheckLeads().ok();
  const Duration patience = leads && options_.patience ? options_.patience() : Duration::max();
  MutexLock lock(&mu_);
  if (!info_) return {};
  if (leads) led_at_ = std::max(led_at_, now);
  Allowance allowance = AllowanceAt(info_->policy.lease, led_at_, forgiven_until_);
  if (!leads) {
    allowance.as_of = looked_at_;
  } else if (patience < allowance.workers_until - now) {
    allowance.workers_until = now + patience;
  }
  return allowance;
}

}  // namespace hlaunch
