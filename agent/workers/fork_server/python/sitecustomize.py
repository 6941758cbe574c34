# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Python imports this when a fork server starts. The server's call returns in each rank, which then
does what the environment's own sitecustomize does."""

import os
import sys


def _serve():
    here = os.path.dirname(os.path.abspath(__file__))
    _, _, others = os.environ["PYTHONPATH"].partition(os.pathsep)  # The first one is this folder.
    if others:
        os.environ["PYTHONPATH"] = others
    else:
        del os.environ["PYTHONPATH"]
    import hlaunch_fork_server
    del sys.modules["hlaunch_fork_server"]
    for path in [path for path in sys.path if os.path.abspath(path) == here]:
        sys.path.remove(path)
        sys.path_importer_cache.pop(path, None)
    hlaunch_fork_server.serve()


def _run_next():
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec
    spec = PathFinder.find_spec(__name__)
    if spec is None:
        raise ImportError("there is no other sitecustomize", name=__name__)  # As if we were none.
    sys.modules[__name__] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[__name__])


if os.environ.pop("HLAUNCH_FORK_SERVER", None) is not None:
    try:
        if sys.version_info < (3, 7):
            raise RuntimeError("Python %d.%d is too old for --preload" % sys.version_info[:2])
        _serve()
    except BaseException as error:  # The script must not run here.
        sys.stderr.write("%s: %s\n" % (type(error).__name__, error))
        os._exit(4)
_run_next()
