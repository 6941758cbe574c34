// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/decide/good_moment.h"

#include <algorithm>

namespace hlaunch {

bool GoodMoment::Want(Duration limit, Instant t) {
  const Instant ends = told_ > 0 ? t + limit : t;
  if (ends_) {
    ends_ = std::min(*ends_, ends);
    return false;
  }
  before_ = told_;
  ends_ = ends;
  return true;
}

bool GoodMoment::Forget() {
  const bool was = wanted();
  ends_.reset();
  return was;
}

void GoodMoment::Take(int64_t boundaries) { told_ = std::max(told_, boundaries); }

}  // namespace hlaunch
