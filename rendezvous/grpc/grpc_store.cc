// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/grpc/grpc_store.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <system_error>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "hlaunch/v1/store.grpc.pb.h"
#include "proto/base/address.h"
#include "proto/base/mutex.h"
#include "proto/base/now.h"
#include "proto/base/status_macros.h"
#include "proto/contract/grpc_status.h"
#include "rendezvous/grpc/grpc_transport.h"
#include "rendezvous/listening/plain_trouble.h"
#include "rendezvous/store/memory_store.h"
#include "rendezvous/store/pauses.h"

namespace hlaunch {
namespace {

// gRPC takes deadlines on the wall clock.
std::chrono::system_clock::time_point OnTheWall(Instant deadline) {
  constexpr Duration kLongest = std::chrono::hours(24 * 365);
  const Duration left = std::clamp<Duration>(deadline - Now(), Duration::zero(), kLongest);
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(left);
}

template <typename Request>
void AddKeys(const std::vector<std::string>& keys, Request* request) {
  for (const std::string& key : keys) request->add_keys(key);
}

}  // namespace

// Holds what all calls need.
class GrpcStore::Link {
 public:
  explicit Link(GrpcStoreOptions given)
      : options(std::move(given)),
        line(options.address, options.port, options.trust, options.host),
        stub(v1::Store::NewStub(line.channel())) {}

  void Prepare(Instant deadline, grpc::ClientContext* context) const {
    context->set_deadline(OnTheWall(deadline));
  }

  void Sign(v1::Caller* caller) const {
    caller->set_job_id(options.job_id);
    caller->set_node_id(options.node_id);
    caller->set_incarnation(options.incarnation);
    caller->set_round(round);
  }

  // Makes one call, until `deadline`. DeadlineExceeded: the server says so, or time is up.
  template <typename Request, typename Response>
  absl::StatusOr<Response> CallOnce(grpc::Status (v1::Store::Stub::*method)(grpc::ClientContext*,
                                                                            const Request&,
                                                                            Response*),
                                    Request& request, Instant deadline) const {
    Sign(request.mutable_caller());
    grpc::ClientContext context;
    Prepare(deadline, &context);
    Response response;
    const grpc::Status status = (stub.get()->*method)(&context, request, &response);
    if (status.ok()) return response;
    return Explain(status);
  }

  // The same for calls that are answered at once.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (v1::Store::Stub::*method)(grpc::ClientContext*,
                                                                        const Request&, Response*),
                                Request& request) const {
    auto response = CallOnce(method, request, Soon());
    return LateIsUnavailable(std::move(response));
  }

  // The same for calls that change nothing, which are repeated.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Ask(grpc::Status (v1::Store::Stub::*method)(grpc::ClientContext*,
                                                                       const Request&, Response*),
                               Request& request) const {
    const Instant soon = Soon();
    for (Pauses pauses;;) {
      auto response = LateIsUnavailable(CallOnce(method, request, soon));
      if (!absl::IsUnavailable(response.status()) || !pauses.PauseUntil(soon)) return response;
    }
  }

  // Waits for keys until `deadline`. The last attempt does not wait: it finds the keys that exist
  // even if no time is left, and says what is missing.
  template <typename Request, typename Response>
  absl::StatusOr<Response> AwaitKeys(grpc::Status (v1::Store::Stub::*method)(grpc::ClientContext*,
                                                                             const Request&,
                                                                             Response*),
                                     const std::vector<std::string>& keys, Instant deadline) const {
    Request request;
    AddKeys(keys, &request);
    request.set_wait(true);
    for (Pauses pauses; Now() < deadline;) {
      auto response = CallOnce(method, request, deadline);
      if (absl::IsDeadlineExceeded(response.status())) break;
      if (!absl::IsUnavailable(response.status()) || !pauses.PauseUntil(deadline)) return response;
    }
    request.set_wait(false);
    return CallOnce(method, request, Soon());
  }

  Instant Soon() const { return Now() + options.request_timeout; }

  absl::Status Explain(const grpc::Status& status) const {
    const absl::Status plain = line.StatusOfCall(status);
    if (!absl::IsUnavailable(plain) || IsAnswer(status)) return plain;
    return absl::UnavailableError(
        absl::StrCat("the rendezvous at ", HostPort(options.address, options.port),
                     " cannot be reached: ", PlainTrouble(plain.message())));
  }

  const GrpcStoreOptions options;
  const Line line;
  const std::unique_ptr<v1::Store::Stub> stub;
  std::atomic<Round> round = 0;

 private:
  template <typename Response>
  static absl::StatusOr<Response> LateIsUnavailable(absl::StatusOr<Response> response) {
    if (!absl::IsDeadlineExceeded(response.status())) return response;
    return absl::UnavailableError(absl::StrCat("no answer in time: ", response.status().message()));
  }
};

namespace {

// Reads on its own thread and holds the changes until they are taken.
class GrpcWatch final : public StoreWatch {
 public:
  using Explain = std::function<absl::Status(const grpc::Status&)>;

  // `explain` says what the call's end means.
  explicit GrpcWatch(Explain explain) : explain_(std::move(explain)) {}
  ~GrpcWatch() override {
    {
      MutexLock lock(&mu_);
      stop_ = true;
      changed_.SignalAll();
    }
    context_.TryCancel();
    if (thread_.joinable()) thread_.join();
  }

  grpc::ClientContext* context() { return &context_; }

  absl::Status Begin(std::unique_ptr<grpc::ClientReader<v1::WatchKeysResponse>> reader) {
    reader_ = std::move(reader);
    try {
      thread_ = std::thread([this] {
        ::pthread_setname_np(::pthread_self(), "store-watch");
        Run();
      });
    } catch (const std::system_error& error) {
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot start a thread for a watch: ", error.code().message()));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<KeyChange>> Next(Instant deadline) override {
    MutexLock lock(&mu_);
    while (!whole_ && !end_.has_value()) {
      if (!changed_.WaitUntil(&mu_, deadline) && !whole_ && !end_.has_value()) {
        return NothingChanged();
      }
    }
    if (!whole_) return *end_;
    whole_ = false;
    changed_.SignalAll();
    return std::exchange(changes_, {});
  }

 private:
  void Run() {
    v1::WatchKeysResponse response;
    while (reader_->Read(&response)) {
      MutexLock lock(&mu_);
      while (whole_ && !stop_) changed_.Wait(&mu_);  // The server keeps what is not read.
      for (v1::ChangedKey& changed : *response.mutable_changes()) {
        KeyChange change;
        change.key = std::move(*changed.mutable_key());
        if (changed.has_value()) change.value = std::move(*changed.mutable_value());
        changes_.push_back(std::move(change));
      }
      whole_ = !response.more();
      changed_.SignalAll();
    }
    const absl::Status end = explain_(reader_->Finish());
    MutexLock lock(&mu_);
    end_ = end.ok() ? absl::UnavailableError("the watch was ended") : end;
    changed_.SignalAll();
  }

  const Explain explain_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::WatchKeysResponse>> reader_;
  Mutex mu_;
  CondVar changed_;
  std::vector<KeyChange> changes_ ABSL_GUARDED_BY(mu_);
  bool whole_ ABSL_GUARDED_BY(mu_) = false;  // `changes_` is complete and can be taken.
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcStore>> GrpcStore::Make(GrpcStoreOptions options) {
  if (!IsAddressLiteral(options.address)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the rendezvous' address '", options.address, "' is not an IP address"));
  }
  return std::unique_ptr<GrpcStore>(new GrpcStore(std::make_unique<Link>(std::move(options))));
}

GrpcStore::GrpcStore(std::unique_ptr<Link> link) : link_(std::move(link)) {}
GrpcStore::~GrpcStore() = default;

void GrpcStore::SetRound(Round round) { link_->round = round; }

absl::Status GrpcStore::Set(absl::string_view key, absl::string_view value) {
  return MultiSet({{std::string(key), std::string(value)}});
}

absl::Status GrpcStore::MultiSet(const std::vector<std::pair<std::string, std::string>>& pairs) {
  v1::SetKeysRequest request;
  for (const auto& [key, value] : pairs) {
    v1::KeyValue* const pair = request.add_pairs();
    pair->set_key(key);
    pair->set_value(value);
  }
  return link_->Call(&v1::Store::Stub::SetKeys, request).status();
}

absl::StatusOr<std::string> GrpcStore::Get(absl::string_view key, Instant deadline) {
  HLAUNCH_ASSIGN_OR_RETURN(std::vector<std::string> values, MultiGet({std::string(key)}, deadline));
  return std::move(values[0]);
}

absl::StatusOr<int64_t> GrpcStore::Add(absl::string_view key, int64_t delta) {
  v1::AddToKeyRequest request;
  request.set_key(std::string(key));
  request.set_delta(delta);
  HLAUNCH_ASSIGN_OR_RETURN(const auto response, link_->Call(&v1::Store::Stub::AddToKey, request));
  return response.sum();
}

absl::StatusOr<std::string> GrpcStore::CompareAndSet(absl::string_view key,
                                                     absl::string_view expected,
                                                     absl::string_view desired) {
  v1::CompareAndSetKeyRequest request;
  request.set_key(std::string(key));
  request.set_expected(std::string(expected));
  request.set_desired(std::string(desired));
  HLAUNCH_ASSIGN_OR_RETURN(auto response, link_->Call(&v1::Store::Stub::CompareAndSetKey, request));
  return std::move(*response.mutable_value());
}

absl::Status GrpcStore::Append(absl::string_view key, absl::string_view data) {
  v1::AppendToKeyRequest request;
  request.set_key(std::string(key));
  request.set_data(std::string(data));
  return link_->Call(&v1::Store::Stub::AppendToKey, request).status();
}

absl::StatusOr<bool> GrpcStore::Delete(absl::string_view key) {
  v1::DeleteKeyRequest request;
  request.set_key(std::string(key));
  HLAUNCH_ASSIGN_OR_RETURN(const auto response, link_->Call(&v1::Store::Stub::DeleteKey, request));
  return response.existed();
}

absl::StatusOr<bool> GrpcStore::Check(const std::vector<std::string>& keys) {
  v1::CheckKeysRequest request;
  AddKeys(keys, &request);
  HLAUNCH_ASSIGN_OR_RETURN(const auto response, link_->Ask(&v1::Store::Stub::CheckKeys, request));
  return response.exist();
}

absl::Status GrpcStore::Wait(const std::vector<std::string>& keys, Instant deadline) {
  return link_
      ->AwaitKeys<v1::AwaitKeysRequest, v1::AwaitKeysResponse>(&v1::Store::Stub::AwaitKeys, keys,
                                                               deadline)
      .status();
}

absl::StatusOr<std::vector<std::string>> GrpcStore::MultiGet(const std::vector<std::string>& keys,
                                                             Instant deadline) {
  HLAUNCH_ASSIGN_OR_RETURN(auto response,
                           (link_->AwaitKeys<v1::GetKeysRequest, v1::GetKeysResponse>(
                               &v1::Store::Stub::GetKeys, keys, deadline)));
  auto& values = *response.mutable_values();
  if (values.size() != static_cast<int>(keys.size())) {
    return absl::UnavailableError("the rendezvous' answer has not as many values as were asked");
  }
  return std::vector<std::string>(std::make_move_iterator(values.begin()),
                                  std::make_move_iterator(values.end()));
}

absl::StatusOr<int64_t> GrpcStore::NumKeys() {
  v1::CountKeysRequest request;
  HLAUNCH_ASSIGN_OR_RETURN(const auto response, link_->Ask(&v1::Store::Stub::CountKeys, request));
  return response.keys();
}

absl::StatusOr<std::vector<std::string>> GrpcStore::List(absl::string_view prefix) {
  v1::ListKeysRequest request;
  request.set_prefix(std::string(prefix));
  HLAUNCH_ASSIGN_OR_RETURN(auto response, link_->Ask(&v1::Store::Stub::ListKeys, request));
  auto& keys = *response.mutable_keys();
  return std::vector<std::string>(std::make_move_iterator(keys.begin()),
                                  std::make_move_iterator(keys.end()));
}

absl::Status GrpcStore::Barrier(absl::string_view key, int64_t world_size, Instant deadline) {
  v1::MeetAtKeyRequest request;
  request.set_key(std::string(key));
  request.set_world_size(world_size);
  const absl::Status met = link_->CallOnce(&v1::Store::Stub::MeetAtKey, request, deadline).status();
  return absl::IsDeadlineExceeded(met) ? BarrierTimedOut(key) : met;
}

absl::StatusOr<std::unique_ptr<StoreWatch>> GrpcStore::Watch(absl::string_view prefix) {
  auto watch = std::make_unique<GrpcWatch>(
      [link = link_.get()](const grpc::Status& status) { return link->Explain(status); });
  v1::WatchKeysRequest request;
  link_->Sign(request.mutable_caller());
  request.set_prefix(std::string(prefix));
  HLAUNCH_RETURN_IF_ERROR(watch->Begin(link_->stub->WatchKeys(watch->context(), request)));
  return std::unique_ptr<StoreWatch>(std::move(watch));
}

}  // namespace hlaunch
