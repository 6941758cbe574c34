# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""jax on several processes, as its documentation of multi-process programs shows it, on CPUs."""

import os
import sys

import jax
import jax.numpy as jnp
from jax.experimental import multihost_utils

if sys.argv[1:] == ["--bare"]:  # JAX asks hlaunch's class for its place.
    jax.distributed.initialize()
else:
    jax.distributed.initialize(num_processes=int(os.environ["JAX_NUM_PROCESSES"]),
                               process_id=int(os.environ["JAX_PROCESS_ID"]))
devices = jax.device_count()
assert devices == jax.process_count() * jax.local_device_count()
found = multihost_utils.process_allgather(jnp.array([jax.process_index()]))
assert sorted(found.flatten().tolist()) == list(range(jax.process_count())), found
print(f"OK: rank {jax.process_index()} of {jax.process_count()}, {devices} devices", flush=True)
