// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace hlaunch {

// Both types have the same code numbers. gRPC 1.51 has no conversion.
grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);

// Whether a server of ours made this status with ToGrpcStatus. False if gRPC made it because no
// answer came, or if another program answered.
bool IsAnswer(const grpc::Status& status);

}  // namespace hlaunch
