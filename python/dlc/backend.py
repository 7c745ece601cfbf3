"""ONNX's backend interface: dlc.backend.prepare(model).run(inputs). Before many models: dlc.preload_dlls()."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

from ._session import InferenceSession


def _outputs_of(model: Any) -> list[tuple[str, bool]]:
    """Name of each output, and whether it is a list."""
    if isinstance(model, bytes):
        model = onnx.load_from_string(model)
    elif not isinstance(model, onnx.ModelProto):
        model = onnx.load(model, load_external_data=False)
    return [(output.name, output.type.HasField("sequence_type")) for output in model.graph.output]


class DlcBackendRep(BackendRep):
    def __init__(self, session: InferenceSession, outputs: list[tuple[str, bool]] | None = None) -> None:
        """outputs: the model's, as it was written: a list is several outputs of the session, NAME[0], NAME[1], ..."""
        self.session = session
        self._found = [output.name for output in session.get_outputs()]
        self._outputs = outputs or [(name, False) for name in self._found]

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """inputs: one array, a sequence of them in the model's order, or a dict by name."""
        rows = self.session.get_inputs()
        if not isinstance(inputs, dict):
            if not isinstance(inputs, (list, tuple)):
                inputs = [inputs]
            inputs = {row.name: array for row, array in zip(rows, inputs)}
        found = dict(zip(self._found, self.session.run(None, inputs)))
        outputs = [[found[item] for item in self._found if item.startswith(f"{name}[")] if is_list else found[name]
                   for name, is_list in self._outputs]
        return tuple(namedtupledict("Outputs", [name for name, _ in self._outputs])(*outputs))


class DlcBackend(Backend):
    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> DlcBackendRep:
        """kwargs: those of dlc.InferenceSession."""
        session = InferenceSession(model, device="cpu" if device == "CPU" else device.lower(), **kwargs)
        return DlcBackendRep(session, _outputs_of(model))

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
