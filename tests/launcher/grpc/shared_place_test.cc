// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/shared_place.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;

// A folder like the one in which a pod finds its service account.
class FindKubernetesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_);
    for (const char* name : {"token", "ca.crt", "namespace"}) {
      std::ofstream(folder_ + "/" + name) << "train\n";
    }
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string ErrorOf(const KubernetesState& state, const Environment& environment) const {
    return std::string(FindKubernetes(state, environment, folder_).status().message());
  }

  const std::string folder_ = absl::StrCat(testing::TempDir(), "service-account.", ::getpid());
  const Environment pod_{{"KUBERNETES_SERVICE_HOST=fd00::1", "KUBERNETES_SERVICE_PORT=443"}};
};

TEST_F(FindKubernetesTest, FindsWhatAPodHas) {
  const auto found = FindKubernetes({}, pod_, folder_);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(Words(found->server), "Kubernetes at [fd00::1]:443");
  EXPECT_TRUE(found->server.tls);
  EXPECT_EQ(found->server.token_file, folder_ + "/token");
  EXPECT_EQ(found->server.authority_file, folder_ + "/ca.crt");
  EXPECT_EQ(found->place.name_space, "train");
  EXPECT_EQ(found->place.name, "hlaunch");
}

TEST_F(FindKubernetesTest, NamesWhatIsMissing) {
  EXPECT_THAT(ErrorOf({}, Environment()), HasSubstr("this is no pod (KUBERNETES_SERVICE_HOST"));
  EXPECT_THAT(ErrorOf({}, Environment()), HasSubstr("give --state-api URL"));
  std::filesystem::remove(folder_ + "/token");
  EXPECT_THAT(ErrorOf({}, pod_), HasSubstr("cannot read " + folder_ + "/token: No such file"));
  EXPECT_THAT(ErrorOf({}, pod_), HasSubstr("the pod needs a serviceAccountName"));
}

TEST_F(FindKubernetesTest, IsToldWhatToUseOutsideOfPods) {
  KubernetesState state;
  state.name_space = "train";
  state.api = Endpoint{"127.0.0.1", 8001};
  state.tls = false;
  const auto proxy = FindKubernetes(state, Environment(), "/nowhere");
  ASSERT_TRUE(proxy.ok()) << proxy.status();
  EXPECT_EQ(Words(proxy->server), "Kubernetes at 127.0.0.1:8001");
  EXPECT_FALSE(proxy->server.tls);
  EXPECT_EQ(proxy->server.token_file, "");
  state.name_space.clear();
  EXPECT_THAT(std::string(FindKubernetes(state, Environment(), "/nowhere").status().message()),
              HasSubstr("name the namespace: --state k8s://NAMESPACE"));
}

}  // namespace
}  // namespace hlaunch
