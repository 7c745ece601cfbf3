"""Options that scripts written for ONNX Runtime set. What decides here is intra_op_num_threads; dlc compiles every model to the full."""

from __future__ import annotations

import enum


class GraphOptimizationLevel(enum.IntEnum):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class SessionOptions:
    """intra_op_num_threads: threads of a run; 0: all cores. The rest is taken and changes nothing."""

    __slots__ = ("intra_op_num_threads", "inter_op_num_threads", "graph_optimization_level", "execution_mode", "log_severity_level",
                 "logid", "enable_mem_pattern", "enable_cpu_mem_arena", "enable_mem_reuse", "use_deterministic_compute", "enable_profiling",
                 "profile_file_prefix", "log_verbosity_level", "_entries")

    def __init__(self) -> None:
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.log_severity_level = 2
        self.logid = ""
        self.enable_mem_pattern = True
        self.enable_cpu_mem_arena = True
        self.enable_mem_reuse = True
        self.use_deterministic_compute = True
        self.enable_profiling = False
        self.profile_file_prefix = "onnxruntime_profile_"
        self.log_verbosity_level = 0
        self._entries: dict[str, str] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        return self._entries[key]


class RunOptions:
    """Taken, and changes nothing."""

    __slots__ = ("log_severity_level", "log_verbosity_level", "logid", "only_execute_path_to_fetches", "_entries")

    def __init__(self) -> None:
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self._entries: dict[str, str] = {}

    def add_run_config_entry(self, key: str, value: str) -> None:
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        return self._entries[key]


def set_default_logger_severity(severity: int) -> None:
    """dlc's notes go to logging.getLogger("dlc"); ONNX Runtime's severities 0 to 4 are its levels."""
    import logging
    logging.getLogger("dlc").setLevel(10 * (severity + 1))


def disable_telemetry_events() -> None:
    """There are none."""
