// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/contract/grpc_status.h"

#include <string>

namespace hlaunch {
namespace {

constexpr char kMark[] = "hlaunch";  // Sent as the status' details.

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message()), kMark};
}

bool IsAnswer(const grpc::Status& status) { return status.error_details() == kMark; }

absl::Status FromGrpcStatus(const grpc::Status& status) {
  return {static_cast<absl::StatusCode>(status.error_code()), status.error_message()};
}

}  // namespace hlaunch
