// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "tests/rendezvous/store_contract.h"

#include <functional>
#include <future>
#include <memory>

#include "rendezvous/store/c10d/c10d_client.h"
#include "rendezvous/store/c10d/c10d_server.h"
#include "rendezvous/store/c10d/store_proxy.h"
#include "rendezvous/store/keys/file_store.h"
#include "tests/fakes/memory_store.h"

namespace hlaunch {
namespace store_contract {
namespace {

TestedStore MakeMemoryStore() { return {nullptr, std::make_shared<MemoryStore>(), {}}; }

TestedStore MakeFileStore() {
  const auto folder = std::make_shared<StoreFolder>();
  return {folder, *FileStore::Open(folder->path + "/store"), {}};
}

TestedStore MakeC10dStore() {
  const std::shared_ptr<C10dServer> server = *C10dServer::Start(*Listen("127.0.0.1", 0));
  return {server, *C10dClient::Connect("127.0.0.1", server->port(), In(100s)), {}, true};
}

TestedStore MakeProxiedStore() {
  struct Both {
    std::unique_ptr<C10dServer> server;
    std::unique_ptr<StoreProxy> proxy;
  };
  auto both = std::make_shared<Both>();
  both->server = *C10dServer::Start(*Listen("127.0.0.1", 0));
  both->proxy = *StoreProxy::Start(*Listen("127.0.0.1", 0), {"127.0.0.1", both->server->port()});
  return {both, *C10dClient::Connect("127.0.0.1", both->proxy->port(), In(100s)), {}, true};
}

INSTANTIATE_TEST_SUITE_P(All, StoreContract,
                         testing::Values(StoreKind{"MemoryStore", MakeMemoryStore},
                                         StoreKind{"C10dClientByProxy", MakeProxiedStore},
                                         StoreKind{"C10dClient", MakeC10dStore},
                                         StoreKind{"FileStore", MakeFileStore}),
                         [](const auto& tested) { return tested.param.name; });

TEST(C10dClient, SendsWhatItsServersLimitsAllow) {
  C10dServerOptions served;
  served.limits.value_bytes = 2 * kMaxValueBytes;
  const auto server = *C10dServer::Start(*Listen("127.0.0.1", 0), served);
  C10dClientOptions options;
  options.limits = served.limits;
  const auto client = *C10dClient::Connect("127.0.0.1", server->port(), In(100s), options);
  const std::string value(2 * kMaxValueBytes, 'x');
  ASSERT_TRUE(client->Set("k", value).ok());
  EXPECT_TRUE(*client->Get("k", In(100s)) == value);
  EXPECT_TRUE(absl::IsResourceExhausted(client->Set("k", value + "x")));
}

// A client that comes before the server retries until the server is there.
TEST(C10dClient, ConnectsOnceTheServerIsThere) {
  auto kept = *Reserve(0);
  auto connecting = std::async(std::launch::async, [port = kept.port] {
    return C10dClient::Connect("127.0.0.1", port, In(100s));
  });
  EXPECT_EQ(connecting.wait_for(50ms), std::future_status::timeout);  // It was refused and retries.
  const auto server = *C10dServer::Start(*Listen("127.0.0.1", kept.port));
  const auto client = connecting.get();
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_TRUE((*client)->Set("k", "v").ok());
}

TEST(C10dClient, SaysThatNobodyListens) {
  const auto kept = *Reserve(0);
  const absl::Status status = C10dClient::Connect("127.0.0.1", kept.port, In(30ms)).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("127.0.0.1 port"));
}

TEST(C10dClient, SeesTheEmptyStoreAfterAReset) {
  TestedStore tested = MakeC10dStore();
  ASSERT_TRUE(tested.store->Set("k", "v").ok());
  std::static_pointer_cast<C10dServer>(tested.host)->Reset();
  EXPECT_EQ(*tested.store->NumKeys(), 0);
}

TEST(C10dClient, GivesUpWhenItsServerIsGone) {
  TestedStore tested = MakeC10dStore();
  tested.host.reset();
  const absl::Status status = tested.store->Wait({"k"}, In(30ms));
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

}  // namespace
}  // namespace store_contract
}  // namespace hlaunch
