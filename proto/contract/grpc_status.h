// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace hlaunch {

// The code numbers of both are the same; gRPC 1.51 converts neither way.
grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);

// Whether a server of ours said so, by ToGrpcStatus: not gRPC for want of an answer, and not
// another program.
bool IsAnswer(const grpc::Status& status);

}  // namespace hlaunch
