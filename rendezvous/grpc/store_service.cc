// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/grpc/store_service.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "proto/base/mutex.h"
#include "proto/base/status_macros.h"
#include "proto/contract/grpc_status.h"
#include "rendezvous/grpc/convert.h"
#include "rendezvous/grpc/grpc_transport.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxReplyBytes = 8 << 20;
constexpr size_t kWatchBytes = 1 << 20;  // The size of one message of a watch.

using Texts = google::protobuf::RepeatedPtrField<std::string>;

std::vector<std::string> Words(const Texts& texts) { return {texts.begin(), texts.end()}; }

// Moves `words` into `texts`.
absl::Status Fill(std::vector<std::string> words, Texts* texts) {
  size_t bytes = 0;
  for (const std::string& word : words) bytes += word.size();
  if (bytes > kMaxReplyBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a reply of ", bytes, " bytes, at most ", kMaxReplyBytes));
  }
  for (std::string& word : words) texts->Add(std::move(word));
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* FinishNow(grpc::CallbackServerContext* context,
                                    const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

// A call that waits in a store. Lives until gRPC is done with it, which is after Finish. The
// store's `done` or the cancellation calls Finish, whichever comes first.
class WaitingCall final : public grpc::ServerUnaryReactor {
 public:
  // `begin` starts the wait; `came` may take the values into the response.
  WaitingCall(std::shared_ptr<MemoryStore> store,
              const std::function<MemoryStore::WaitId(MemoryStore&, MemoryStore::Done)>& begin,
              std::function<absl::Status(MemoryStore::Values)> came)
      : store_(std::move(store)), came_(std::move(came)) {
    // gRPC acts on Finish, and cancels the call, only once it has got this object.
    id_ = begin(*store_, [this](absl::StatusOr<MemoryStore::Values> values) {
      Finish(ToGrpcStatus(values.ok() ? came_(*std::move(values)) : values.status()));
    });
  }

  void OnCancel() override {
    if (store_->GiveUp(id_)) Finish(ToGrpcStatus(absl::CancelledError("the caller has gone")));
  }
  void OnDone() override { delete this; }

 private:
  const std::shared_ptr<MemoryStore> store_;  // Shared with its job.
  const std::function<absl::Status(MemoryStore::Values)> came_;
  MemoryStore::WaitId id_ = 0;
};

// A watch. gRPC owns it until OnDone; the store may ring once more afterwards.
//
// Thread-safe. The thread that finds it idle starts the next write, or the end.
class WatchingCall final : public grpc::ServerWriteReactor<v1::WatchKeysResponse>,
                           public std::enable_shared_from_this<WatchingCall> {
 public:
  explicit WatchingCall(std::shared_ptr<MemoryStore> store) : store_(std::move(store)) {}

  void Begin(const std::string& prefix) {
    self_ = shared_from_this();
    auto feed = store_->Follow(prefix, [weak = weak_from_this()] {
      if (const auto watch = weak.lock()) watch->Pump();
    });
    {
      MutexLock lock(&mu_);
      if (feed.ok()) {
        feed_ = *std::move(feed);
      } else {
        end_ = feed.status();
      }
    }
    Pump();
  }

  void OnWriteDone(bool ok) override {
    {
      MutexLock lock(&mu_);
      busy_ = false;
      if (!ok && !end_.has_value()) end_ = absl::CancelledError("the stream broke");
    }
    Pump();
  }
  void OnCancel() override {
    {
      MutexLock lock(&mu_);
      if (!end_.has_value()) end_ = absl::CancelledError("the caller has gone");
    }
    Pump();
  }
  void OnDone() override {
    if (feed_ != nullptr) store_->Unfollow(feed_);
    self_.reset();
  }

 private:
  void Pump() {
    std::optional<absl::Status> end;
    {
      MutexLock lock(&mu_);
      if (busy_ || (feed_ == nullptr && !end_.has_value())) return;
      if (!end_.has_value() && !PackLocked()) return;
      busy_ = true;  // For good, if this is the end.
      end = end_;
    }
    if (end.has_value()) {
      Finish(ToGrpcStatus(*end));
    } else {
      StartWrite(&response_);
    }
  }

  // Returns false if there is nothing to tell.
  bool PackLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    auto taken = store_->Take(feed_, kWatchBytes);
    if (!taken.ok()) {
      end_ = taken.status();
      return true;
    }
    if (taken->changes.empty() && !taken->first) return false;
    response_.Clear();
    response_.set_more(taken->more);
    for (KeyChange& change : taken->changes) {
      v1::ChangedKey* const changed = response_.add_changes();
      changed->set_key(std::move(change.key));
      if (change.value.has_value()) changed->set_value(*std::move(change.value));
    }
    return true;
  }

  const std::shared_ptr<MemoryStore> store_;  // Shared with its job.
  std::shared_ptr<WatchingCall> self_;        // Until OnDone.
  v1::WatchKeysResponse response_;            // Belongs to the thread that set busy_.
  Mutex mu_;
  std::shared_ptr<MemoryStore::Feed> feed_;  // Set under the lock, in Begin.
  bool busy_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);
};

// Ends a watch before it begins.
class RefusedWatch final : public grpc::ServerWriteReactor<v1::WatchKeysResponse> {
 public:
  explicit RefusedWatch(const absl::Status& status) { Finish(ToGrpcStatus(status)); }
  void OnDone() override { delete this; }
};

}  // namespace

absl::StatusOr<std::shared_ptr<MemoryStore>> StoreService::Open(
    const grpc::CallbackServerContext& context, const v1::Caller& caller) {
  HLAUNCH_RETURN_IF_ERROR(jobs_.CheckLeads());
  HLAUNCH_RETURN_IF_ERROR(CheckPeerMayUseJob(context, peers_, caller.job_id()));
  const std::shared_ptr<JobRendezvous> job = jobs_.Find(caller.job_id());
  if (job == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("there is no job '", ToUtf8(caller.job_id(), kMaxNameBytes), "' here"));
  }
  return job->SharedKeys(caller.node_id(), caller.incarnation(), caller.round());
}

template <typename Request, typename Act>
grpc::ServerUnaryReactor* StoreService::Answer(grpc::CallbackServerContext* context,
                                               const Request& request, Act act) {
  const auto store = Open(*context, request.caller());
  return FinishNow(context, store.ok() ? act(**store) : store.status());
}

grpc::ServerUnaryReactor* StoreService::SetKeys(grpc::CallbackServerContext* context,
                                                const v1::SetKeysRequest* request,
                                                v1::SetKeysResponse* /*response*/) {
  return Answer(context, *request, [&](MemoryStore& store) {
    std::vector<std::pair<std::string, std::string>> pairs;
    for (const v1::KeyValue& pair : request->pairs()) pairs.emplace_back(pair.key(), pair.value());
    return store.MultiSet(pairs);
  });
}

grpc::ServerUnaryReactor* StoreService::GetKeys(grpc::CallbackServerContext* context,
                                                const v1::GetKeysRequest* request,
                                                v1::GetKeysResponse* response) {
  if (!request->wait()) {
    return Answer(context, *request, [&](MemoryStore& store) -> absl::Status {
      HLAUNCH_ASSIGN_OR_RETURN(auto values, store.MultiGet(Words(request->keys()), Instant()));
      return Fill(std::move(values), response->mutable_values());
    });
  }
  auto store = Open(*context, request->caller());
  if (!store.ok()) return FinishNow(context, store.status());
  return new WaitingCall(
      *std::move(store),
      [&](MemoryStore& keys, MemoryStore::Done done) {
        return keys.WhenAll(Words(request->keys()), /*with_values=*/true, std::move(done));
      },
      [response](MemoryStore::Values values) {
        return Fill(std::move(values), response->mutable_values());
      });
}

grpc::ServerUnaryReactor* StoreService::AwaitKeys(grpc::CallbackServerContext* context,
                                                  const v1::AwaitKeysRequest* request,
                                                  v1::AwaitKeysResponse* /*response*/) {
  if (!request->wait()) {
    return Answer(context, *request, [&](MemoryStore& store) {
      return store.Wait(Words(request->keys()), Instant());
    });
  }
  auto store = Open(*context, request->caller());
  if (!store.ok()) return FinishNow(context, store.status());
  return new WaitingCall(
      *std::move(store),
      [&](MemoryStore& keys, MemoryStore::Done done) {
        return keys.WhenAll(Words(request->keys()), /*with_values=*/false, std::move(done));
      },
      [](const MemoryStore::Values&) { return absl::OkStatus(); });
}

grpc::ServerUnaryReactor* StoreService::CheckKeys(grpc::CallbackServerContext* context,
                                                  const v1::CheckKeysRequest* request,
                                                  v1::CheckKeysResponse* response) {
  return Answer(context, *request, [&](MemoryStore& store) -> absl::Status {
    HLAUNCH_ASSIGN_OR_RETURN(const bool exist, store.Check(Words(request->keys())));
    response->set_exist(exist);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* StoreService::AddToKey(grpc::CallbackServerContext* context,
                                                 const v1::AddToKeyRequest* request,
                                                 v1::AddToKeyResponse* response) {
  return Answer(context, *request, [&](MemoryStore& store) -> absl::Status {
    HLAUNCH_ASSIGN_OR_RETURN(const int64_t sum, store.Add(request->key(), request->delta()));
    response->set_sum(sum);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* StoreService::CompareAndSetKey(grpc::CallbackServerContext* context,
                                                         const v1::CompareAndSetKeyRequest* request,
                                                         v1::CompareAndSetKeyResponse* response) {
  return Answer(context, *request, [&](MemoryStore& store) -> absl::Status {
    HLAUNCH_ASSIGN_OR_RETURN(
        std::string value,
        store.CompareAndSet(request->key(), request->expected(), request->desired()));
    response->set_value(std::move(value));
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* StoreService::AppendToKey(grpc::CallbackServerContext* context,
                                                    const v1::AppendToKeyRequest* request,
                                                    v1::AppendToKeyResponse* /*response*/) {
  return Answer(context, *request,
                [&](MemoryStore& store) { return store.Append(request->key(), request->data()); });
}

grpc::ServerUnaryReactor* StoreService::DeleteKey(grpc::CallbackServerContext* context,
                                                  const v1::DeleteKeyRequest* request,
                                                  v1::DeleteKeyResponse* response) {
  return Answer(context, *request, [&](MemoryStore& store) -> absl::Status {
    HLAUNCH_ASSIGN_OR_RETURN(const bool existed, store.Delete(request->key()));
    response->set_existed(existed);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* StoreService::CountKeys(grpc::CallbackServerContext* context,
                                                  const v1::CountKeysRequest* request,
                                                  v1::CountKeysResponse* response) {
  return Answer(context, *request, [&](MemoryStore& store) -> absl::Status {
    HLAUNCH_ASSIGN_OR_RETURN(const int64_t keys, store.NumKeys());
    response->set_keys(keys);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* StoreService::ListKeys(grpc::CallbackServerContext* context,
                                                 const v1::ListKeysRequest* request,
                                                 v1::ListKeysResponse* response) {
  return Answer(context, *request, [&](MemoryStore& store) -> absl::Status {
    HLAUNCH_ASSIGN_OR_RETURN(auto keys, store.List(request->prefix()));
    return Fill(std::move(keys), response->mutable_keys());
  });
}

grpc::ServerUnaryReactor* StoreService::MeetAtKey(grpc::CallbackServerContext* context,
                                                  const v1::MeetAtKeyRequest* request,
                                                  v1::MeetAtKeyResponse* /*response*/) {
  auto store = Open(*context, request->caller());
  if (!store.ok()) return FinishNow(context, store.status());
  return new WaitingCall(
      *std::move(store),
      [&](MemoryStore& keys, MemoryStore::Done done) {
        return keys.WhenBarrier(request->key(), request->world_size(), std::move(done));
      },
      [](const MemoryStore::Values&) { return absl::OkStatus(); });
}

grpc::ServerWriteReactor<v1::WatchKeysResponse>* StoreService::WatchKeys(
    grpc::CallbackServerContext* context, const v1::WatchKeysRequest* request) {
  auto store = Open(*context, request->caller());
  if (!store.ok()) return new RefusedWatch(store.status());
  const auto watch = std::make_shared<WatchingCall>(*std::move(store));
  watch->Begin(request->prefix());
  return watch.get();  // It keeps itself alive until OnDone.
}

}  // namespace hlaunch
