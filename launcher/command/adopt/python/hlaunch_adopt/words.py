# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""torch's LaunchConfig as words of hlaunch, which it understands under the name torchrun. Pure.

Each field becomes words, is not needed, or is refused by its name.
"""

import dataclasses


class Refused(Exception):
    """hlaunch cannot run this job as torch would; the message says why and names the way out."""


def words_of(config, folder=None):
    """Returns the words for `config`. `folder` is the log folder where the user named none."""
    words = []
    for field in dataclasses.fields(config):
        if field.name in FIELDS:
            words += FIELDS[field.name](config)
        elif not _is_default(field, getattr(config, field.name)):
            raise Refused(f"LaunchConfig.{field.name} is newer than this hlaunch; leave it out")
    if folder is not None and "--log-dir" not in words:
        words += ["--log-dir", folder]
    return words


def _is_default(field, value):
    if field.default_factory is not dataclasses.MISSING:
        return value == field.default_factory()
    return value == field.default


def _nodes(config):
    low, high = config.min_nodes, config.max_nodes
    return ["--nnodes", str(high) if low == high else f"{low}:{high}"]


def _endpoint(text):
    """(host, port); the port is empty if there is none."""
    text = text.strip()
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):  # An IPv6 address has colons of its own.
        return text, ""
    return host, port


def _meeting(config):
    """The words for where the nodes meet: the fields rdzv_backend, rdzv_endpoint, rdzv_configs."""
    static = config.rdzv_backend == "static"
    host, port = _endpoint(config.rdzv_endpoint)
    port_words = ["--master-port", port] if port not in ("", "0", "-1") else []
    if config.max_nodes == 1:  # It meets nobody, whatever the backend. Scripts may know the port.
        return port_words if static else []
    if not static and config.rdzv_backend != "c10d":
        raise Refused(f"rdzv_backend {config.rdzv_backend!r}: hlaunch needs no other service for "
                      "nodes to meet; use c10d or static, with an endpoint on one of the nodes")
    given = {key: value for key, value in config.rdzv_configs.items() if key != "timeout"}
    words = []
    if static:
        if "rank" not in given:
            raise Refused("rdzv_backend 'static' needs the node's rank in rdzv_configs")
        words = ["--node-rank", str(given.pop("rank")), "--master-addr", host, *port_words]
    elif config.rdzv_endpoint:
        words = ["--rdzv-backend", "c10d", "--rdzv-endpoint", config.rdzv_endpoint]
    if given:  # hlaunch says which keys it knows.
        words += ["--rdzv-conf", ",".join(f"{key}={value}" for key, value in given.items())]
    return words


def _which(streams):
    """torch's Std of all ranks, or {local rank: Std}, as a value of --redirects."""
    if isinstance(streams, dict):
        return ",".join(f"{rank}:{int(std)}" for rank, std in sorted(streams.items()))
    return str(int(streams)) if int(streams) else ""


def made_folder(config):
    """Returns the log folder that torch named and made itself, and that nobody will look into; None
    if the user named one, or wants files, which are found by torch's name for it."""
    import os.path
    import tempfile
    specs = config.logs_specs
    folder = getattr(specs, "_root_log_dir", None)
    if any(_which(getattr(specs, name, 0) or 0) for name in ("_redirects", "_tee")):
        return None
    own = (folder and os.path.dirname(folder) == tempfile.gettempdir()
           and os.path.basename(folder).startswith("torchelastic_"))
    return folder if own else None


def _logs(config):
    specs = config.logs_specs
    if specs is None:
        return []
    if type(specs).__name__ != "DefaultLogsSpecs":
        raise Refused(f"logs_specs {type(specs).__name__} is Python code that names log files, and "
                      "hlaunch runs none; use DefaultLogsSpecs, torchrun's --log-dir and --tee")
    folder = getattr(specs, "_root_log_dir", None)
    words = ["--log-dir", folder] if folder and not made_folder(config) else []
    for name in ("redirects", "tee"):
        which = _which(getattr(specs, f"_{name}", 0) or 0)
        words += [f"--{name}", which] if which else []
    shown = getattr(specs, "_local_ranks_filter", None)
    if shown:
        words += ["--local-ranks-filter", ",".join(str(rank) for rank in sorted(shown))]
    return words


def _numa(config):
    if config.numa_options is None:
        return []
    return ["--numa-binding", str(config.numa_options.affinity_mode.value)]


def _optional(option, field):
    """A field whose empty value means nothing was given."""
    def words(config):
        value = getattr(config, field)
        return [option, str(value)] if value not in (None, "") else []
    return words


def _texts(option, field):
    def words(config):
        texts = getattr(config, field) or []
        return [option, ",".join(text.replace(",", ",,") for text in texts)] if texts else []
    return words


def _refuse_unless(field, empty, way_out):
    def words(config):
        value = getattr(config, field)
        if value not in empty:
            raise Refused(f"{field} {value!r} is Python code of torch's agent, and hlaunch runs "
                          f"none; {way_out}")
        return []
    return words


def _not_needed(_):
    return []


FIELDS = {
    "min_nodes": _nodes,
    "max_nodes": _not_needed,  # With min_nodes.
    "nproc_per_node": lambda config: ["--nproc-per-node", str(config.nproc_per_node)],
    "logs_specs": _logs,
    "run_id": _optional("--rdzv-id", "run_id"),
    "role": lambda config: ["--role", config.role],
    "rdzv_endpoint": _not_needed,  # With rdzv_backend.
    "rdzv_backend": _meeting,
    "rdzv_configs": _not_needed,  # With rdzv_backend.
    "rdzv_timeout": _not_needed,  # torch's default differs from hlaunch's, and it copies it.
    "max_restarts": lambda config: ["--max-restarts", str(config.max_restarts)],
    "monitor_interval": _not_needed,  # hlaunch knows of a worker's end at once.
    "start_method": _not_needed,  # Workers are programs.
    "log_line_prefix_template": _optional("--log-line-prefix-template", "log_line_prefix_template"),
    "metrics_cfg": _refuse_unless("metrics_cfg", (None, {}), "leave it out, and see --metrics-port"),
    "local_addr": _optional("--local-addr", "local_addr"),
    "event_log_handler": _refuse_unless("event_log_handler", ("null", "", None),
                                        "leave it out, and see --on-event"),
    "numa_options": _numa,
    "signals_to_handle": _optional("--signals-to-handle", "signals_to_handle"),
    "duplicate_stdout_filters": _texts("--duplicate-stdout-filters", "duplicate_stdout_filters"),
    "duplicate_stderr_filters": _texts("--duplicate-stderr-filters", "duplicate_stderr_filters"),
    "virtual_local_rank": lambda config: (["--virtual-local-rank"] if config.virtual_local_rank
                                          else []),
    "shutdown_timeout": _optional("--shutdown-timeout", "shutdown_timeout"),
}
