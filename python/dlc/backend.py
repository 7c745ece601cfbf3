"""ONNX's backend interface: dlc.backend.prepare(model).run(inputs)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

from ._session import InferenceSession


class DlcBackendRep(BackendRep):
    def __init__(self, session: InferenceSession) -> None:
        self.session = session
        self._names = [output.name for output in session.get_outputs()]

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """inputs: one array, a sequence of them in the model's order, or a dict by name."""
        rows = self.session.get_inputs()
        if not isinstance(inputs, dict):
            if not isinstance(inputs, (list, tuple)):
                inputs = [inputs]
            inputs = {row.name: array for row, array in zip(rows, inputs)}
        outputs = self.session.run(None, inputs)
        return tuple(namedtupledict("Outputs", self._names)(*outputs))


class DlcBackend(Backend):
    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> DlcBackendRep:
        """kwargs: those of dlc.InferenceSession."""
        return DlcBackendRep(InferenceSession(model, device="cpu" if device == "CPU" else device.lower(), **kwargs))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node: Any, inputs: Any, device: str = "CPU", outputs_info: Sequence[Any] | None = None,
                 **kwargs: Any) -> tuple[Any, ...]:
        """A model of this node alone; inputs by position, those left out ('') aside."""
        names = [name for name in node.input if name]
        rows = [onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
                for name, array in zip(names, inputs)]
        if outputs_info is None:
            outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        else:
            outputs = [onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(dtype), shape)
                       for name, (dtype, shape) in zip(node.output, outputs_info)]
        opset = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        graph = onnx.helper.make_graph([node], "node", rows, outputs)
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
        return cls.run_model(model, list(inputs), device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        from ._session import get_available_providers
        return device == "CPU" or (device.startswith("CUDA") and len(get_available_providers()) > 1)

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **kwargs: Any) -> bool:
        return cls.supports_device(device)


prepare = DlcBackend.prepare
run_model = DlcBackend.run_model
run_node = DlcBackend.run_node
supports_device = DlcBackend.supports_device
is_compatible = DlcBackend.is_compatible
