"""torch.compile(model, backend="dlc"): what Dynamo finds goes through torch.onnx into sessions.

Dynamo's graph is exported when it is called first with inputs of certain shapes, from these inputs, and again for other shapes;
weights become constants, and are looked at before every call: a graph whose weights changed is compiled anew. Inputs and outputs
are torch's own memory. dlc computes no gradients: where torch would record them the call is refused.
"""

from __future__ import annotations

import copy
import io
import logging
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ._errors import UnsupportedError, UsageError
from ._session import InferenceSession

log = logging.getLogger("dlc")


def _attention(query: Any, key: Any, value: Any, embed_dim: int, num_heads: int, qkv_weight: Any, qkv_bias: Any, proj_weight: Any,
               proj_bias: Any, mask: Any = None, need_weights: bool = True, average_attn_weights: bool = True,
               mask_type: int | None = None) -> Any:
    """torch._native_multi_head_attention of a sequence with itself; where the mask is not 0 nothing is looked at."""
    batch, length, _ = query.shape
    heads = torch.nn.functional.linear(query, qkv_weight, qkv_bias).view(batch, length, 3, num_heads, embed_dim // num_heads)
    q, k, v = heads.permute(2, 0, 3, 1, 4).unbind(0)
    scores = (q / (embed_dim // num_heads) ** 0.5) @ k.transpose(-2, -1)
    if mask is not None:
        mask = mask.view(batch, 1, 1, length) if mask_type == 1 else mask
        scores = scores.masked_fill(mask != 0, float("-inf"))
    weights = scores.softmax(-1)
    result = torch.nn.functional.linear((weights @ v).transpose(1, 2).reshape(batch, length, embed_dim), proj_weight, proj_bias)
    return result, (weights.mean(1) if average_attn_weights else weights) if need_weights else None


def _encoder_layer(x: Any, embed_dim: int, num_heads: int, qkv_weight: Any, qkv_bias: Any, proj_weight: Any, proj_bias: Any,
                   use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Any, norm_bias_1: Any, norm_weight_2: Any,
                   norm_bias_2: Any, ffn_weight_1: Any, ffn_bias_1: Any, ffn_weight_2: Any, ffn_bias_2: Any, mask: Any = None,
                   mask_type: int | None = None) -> Any:
    """torch._transformer_encoder_layer_fwd"""
    def attend(x: Any) -> Any:
        return _attention(x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False, True, mask_type)[0]

    def feed(x: Any) -> Any:
        hidden = torch.nn.functional.linear(x, ffn_weight_1, ffn_bias_1)
        return torch.nn.functional.linear(torch.nn.functional.gelu(hidden) if use_gelu else hidden.relu(), ffn_weight_2, ffn_bias_2)

    def norm(x: Any, weight: Any, bias: Any) -> Any:
        return torch.nn.functional.layer_norm(x, (embed_dim,), weight, bias, eps)

    if norm_first:
        x = x + attend(norm(x, norm_weight_1, norm_bias_1))
        return x + feed(norm(x, norm_weight_2, norm_bias_2))
    x = norm(x + attend(x), norm_weight_1, norm_bias_1)
    return norm(x + feed(x), norm_weight_2, norm_bias_2)


# What torch.nn's modules call in one piece where no gradient is wanted, and torch.onnx does not know.
_SPELLED = {torch._native_multi_head_attention: _attention, torch._transformer_encoder_layer_fwd: _encoder_layer}


def _spell(graph: Any) -> Any:
    """The graph with such calls spelled out; torch's own is left as it is."""
    calls = [node for node in graph.graph.nodes if node.target in _SPELLED] if isinstance(graph, torch.fx.GraphModule) else []
    if not calls:
        return graph
    graph = torch.fx.GraphModule(graph, copy.deepcopy(graph.graph))
    for node in graph.graph.nodes:
        is_of_itself = node.target is not torch._native_multi_head_attention or node.args[0] is node.args[1] is node.args[2]
        if node.target in _SPELLED and is_of_itself:
            node.target = _SPELLED[node.target]
    graph.recompile()
    return graph


class _Bound(torch.nn.Module):
    """The graph as a function of some of its arguments; the others stay as they were."""

    def __init__(self, graph: Any, arguments: Sequence[Any], free: Sequence[int]) -> None:
        super().__init__()
        self.graph, self.free = graph, list(free)
        self.arguments = [value.detach() if isinstance(value, torch.Tensor) else value for value in arguments]

    def forward(self, *given: Any) -> Any:
        arguments = list(self.arguments)
        for i, value in zip(self.free, given):
            arguments[i] = value
        return tuple(value for value in self.graph(*arguments) if isinstance(value, torch.Tensor))


def _export(graph: Any, arguments: Sequence[Any], free: Sequence[int]) -> bytes:
    file = io.BytesIO()
    given = tuple(arguments[i] for i in free)
    names = [f"input_{i}" for i in free]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # tracing: Dynamo's graph has no control flow left, and nothing beside torch is needed
        try:
            torch.onnx.export(_Bound(_spell(graph), arguments, free).eval(), given, file,  # type: ignore[arg-type]
                              input_names=names, dynamo=False)
        except torch.onnx.errors.UnsupportedOperatorError as error:
            raise UnsupportedError(str(error)) from error
    return file.getvalue()


class _Compiled:
    """A graph for inputs of certain shapes."""

    def __init__(self, graph: Any, arguments: Sequence[Any], is_weight: Sequence[bool], options: dict[str, Any]) -> None:
        self.free = [i for i, value in enumerate(arguments) if isinstance(value, torch.Tensor) and not is_weight[i]]
        before = [value._version for value in arguments if isinstance(value, torch.Tensor)]
        self.results = list(graph(*arguments))
        if before != [value._version for value in arguments if isinstance(value, torch.Tensor)]:
            raise UnsupportedError("the graph writes into its inputs; dlc compiles functions of tensors")
        # from here on shapes alone: a result is made anew by every call
        self.results = [torch.empty_like(value, device="meta") if isinstance(value, torch.Tensor) else value for value in self.results]
        self.made = [i for i, value in enumerate(self.results) if isinstance(value, torch.Tensor)]
        self.session = InferenceSession(_export(graph, arguments, self.free), **options) if self.made else None
        self.names = [row.name for row in self.session.get_inputs()] if self.session else []

    def __call__(self, arguments: Sequence[Any]) -> list[Any]:
        results = list(self.results)
        for i in self.made:
            results[i] = torch.empty(results[i].shape, dtype=results[i].dtype)
        if self.session:
            given = {f"input_{i}": arguments[i].detach().contiguous() for i in self.free}
            self.session.run(None, {name: given[name] for name in self.names}, out=[results[i] for i in self.made])
        return results


class _Graph:
    """What torch.compile calls in place of a graph of Dynamo's."""

    def __init__(self, graph: Any, inputs: Sequence[Any], options: dict[str, Any]) -> None:
        self.graph, self.options = graph, options
        self.is_weight = [isinstance(value, torch.nn.Parameter) for value in inputs]
        self.held = list(graph.parameters()) + list(graph.buffers())
        self.compiled: dict[Any, _Compiled] = {}
        self.weights: Any = None

    def __call__(self, *arguments: Any) -> list[Any]:
        tensors = [value for value in arguments if isinstance(value, torch.Tensor)]
        if torch.is_grad_enabled() and any(value.requires_grad for value in (*tensors, *self.held)):
            raise UsageError("dlc computes no gradients: call the compiled function under torch.no_grad()")
        weights = [value for value, is_weight in zip(arguments, self.is_weight) if is_weight] + self.held
        seen = [(value.data_ptr(), value._version) for value in weights]
        if seen != self.weights:
            self.compiled, self.weights = {}, seen
        key = tuple((tuple(value.shape), value.dtype) if isinstance(value, torch.Tensor) else value
                    for value, is_weight in zip(arguments, self.is_weight) if not is_weight)
        found = self.compiled.get(key)
        with torch.no_grad():
            if found is None:
                log.info("compiling a graph of torch for inputs %s", key)
                found = self.compiled[key] = _Compiled(self.graph, arguments, self.is_weight, self.options)
            return found(arguments)


def backend(graph: Any, inputs: Sequence[Any], *, options: dict[str, Any] | None = None) -> Callable[..., Any]:
    """A backend for torch.compile; options are those of dlc.InferenceSession."""
    if any(isinstance(value, torch.Tensor) and value.device.type != "cpu" for value in inputs):
        raise UnsupportedError("the graph's tensors are not in the processor's memory; backend dlc compiles for the processor")
    return _Graph(graph, inputs, {"device": "cpu", **(options or {})})
