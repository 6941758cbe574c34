# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Runs a script by optimum-habana's own runner, with two ranks: habana_runner.py SCRIPT [ARGUMENTS].

The package as a whole wants the release of transformers that it was made for; its runner does not."""

import importlib.util
import pathlib
import sys
import types

package = pathlib.Path(importlib.util.find_spec("optimum").submodule_search_locations[0], "habana")
for name, path in (("optimum.habana", package), ("optimum.habana.distributed", package / "distributed")):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [str(path)]

from optimum.habana.distributed.distributed_runner import DistributedRunner

sys.exit(DistributedRunner([" ".join(sys.argv[1:])], world_size=2).run())
