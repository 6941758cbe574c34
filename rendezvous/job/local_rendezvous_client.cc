// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/job/local_rendezvous_client.h"

#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "proto/base/mutex.h"

namespace hlaunch {

// The session. It outlives the client if the rendezvous is just inside it, so it knows whether
// there is still a listener to call.
class LocalRendezvousClient::Link : public JobRendezvous::Session {
 public:
  explicit Link(Listener* listener) : listener_(listener) {}

  void OnDirective(const Directive& directive) override {
    if (!Enter()) return;
    listener_->OnDirective(directive);
    Leave();
  }

  void OnQuestion(const NodeQuestion& question) override {
    if (!Enter()) return;
    listener_->OnQuestion(question);
    Leave();
  }

  void OnWord(const RoundWord& word) override {
    if (!Enter()) return;
    listener_->OnWord(word);
    Leave();
  }

  void OnEnd(const absl::Status& status) override {
    {
      MutexLock lock(&mu_);
      if (closed_) return;
      closed_ = true;
      end_ = status;
      if (inside_) return;  // The thread inside tells it: one call at a time.
      inside_ = true;
    }
    Leave();
  }

  // No listener call is made after it.
  void Close() {
    MutexLock lock(&mu_);
    closed_ = true;
    end_.reset();
    while (inside_) left_.Wait(&mu_);
  }

 private:
  // Returns false if the listener must not be called any more.
  bool Enter() {
    MutexLock lock(&mu_);
    if (!closed_) inside_ = true;
    return !closed_;
  }

  void Leave() {
    std::optional<absl::Status> end;
    {
      MutexLock lock(&mu_);
      end.swap(end_);
    }
    if (end) listener_->OnEnd(*end);
    MutexLock lock(&mu_);
    inside_ = false;
    left_.SignalAll();
  }

  Listener* const listener_;
  Mutex mu_;
  CondVar left_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  bool inside_ ABSL_GUARDED_BY(mu_) = false;  // A thread is in the listener.
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);
};

LocalRendezvousClient::LocalRendezvousClient(JobRendezvous& rendezvous) : rendezvous_(rendezvous) {}

LocalRendezvousClient::~LocalRendezvousClient() {
  if (link_ == nullptr) return;
  rendezvous_.Detach(node_id_, link_.get());
  link_->Close();
}

void LocalRendezvousClient::Join(const NodeInfo& info, const NodeUpdate& update,
                                 Listener* listener) {
  NodeInfo here = info;
  if (here.address.empty()) here.address = "127.0.0.1";
  here.route_address = "127.0.0.1";
  node_id_ = info.node_id;
  incarnation_ = info.incarnation;
  if (info.policy.max_nodes > 1) lease_ = info.policy.lease;
  link_ = std::make_shared<Link>(listener);
  const absl::Status status = rendezvous_.Attach(here, update, /*local=*/true, link_);
  if (!status.ok()) link_->OnEnd(AsRefusal(status));
}

void LocalRendezvousClient::Send(const NodeUpdate& update) {
  const absl::Status status = rendezvous_.Update(node_id_, incarnation_, update);
  if (!status.ok()) link_->OnEnd(AsRefusal(status));
}

void LocalRendezvousClient::Answer(NodeAnswer answer) {
  rendezvous_.Answer(node_id_, incarnation_, std::move(answer));
}

void LocalRendezvousClient::Tell(RoundWord word) {
  rendezvous_.Tell(node_id_, incarnation_, std::move(word));
}

Allowance LocalRendezvousClient::AllowanceNow(Instant now) const {
  return lease_ ? AllowanceAt(*lease_, now, {}) : Allowance();
}

}  // namespace hlaunch
