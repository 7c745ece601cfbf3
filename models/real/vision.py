"""torchvision's classification, segmentation, detection, video and flow nets, with drawn weights, through both exporters.

ROWS   kind, net, exporter (s: TorchScript, d: dynamo), opset, dynamic dimensions of the image (b: batch, hw: height and width), sizes
"""

import tempfile
import pathlib

import torch
import torchvision

import case

C, S, D, V, F = "classification", "segmentation", "detection", "video", "flow"
ROWS = [
    (C, "alexnet", "s", 11, "b", [224]),
    (C, "resnet18", "s", 11, "bhw", [64, 96]),
    (C, "resnet50", "d", 18, "b", [64]),
    (C, "resnext50_32x4d", "s", 13, "b", [64]),
    (C, "densenet121", "s", 14, "bhw", [64, 80]),
    (C, "mobilenet_v2", "d", 20, "b", [96]),
    (C, "mobilenet_v3_small", "s", 17, "bhw", [64, 100]),
    (C, "mobilenet_v3_large", "d", 18, "bhw", [64, 96]),
    (C, "squeezenet1_0", "s", 12, "bhw", [64, 97]),
    (C, "shufflenet_v2_x0_5", "s", 11, "b", [64]),
    (C, "shufflenet_v2_x1_0", "d", 19, "b", [64]),
    (C, "mnasnet0_5", "s", 15, "bhw", [64, 96]),
    (C, "googlenet", "s", 16, "bhw", [64, 96]),
    (C, "inception_v3", "s", 17, "b", [96]),
    (C, "efficientnet_b0", "s", 18, "bhw", [64, 96]),
    (C, "efficientnet_v2_s", "d", 18, "b", [64]),
    (C, "regnet_y_400mf", "s", 11, "b", [64]),
    (C, "regnet_x_400mf", "d", 18, "b", [64]),
    (C, "convnext_tiny", "s", 17, "bhw", [64, 96]),
    (C, "swin_t", "s", 17, "b", [64]),
    (C, "swin_v2_t", "s", 18, "b", [64]),
    (C, "swin_t", "d", 18, "b", [64]),
    (C, "maxvit_t", "s", 17, "", [224]),
    (S, "fcn_resnet50", "s", 12, "bhw", [64, 72]),
    (S, "deeplabv3_resnet50", "s", 13, "bhw", [64, 80]),
    (S, "deeplabv3_mobilenet_v3_large", "d", 18, "b", [96]),
    (S, "lraspp_mobilenet_v3_large", "s", 11, "bhw", [64, 100]),
    (D, "fasterrcnn_mobilenet_v3_large_320_fpn", "s", 11, "hw", [128, 160]),
    (D, "fasterrcnn_resnet50_fpn", "s", 17, "", [128]),
    (D, "fasterrcnn_resnet50_fpn_v2", "s", 16, "", [128]),
    (D, "maskrcnn_resnet50_fpn", "s", 16, "", [128]),
    (D, "keypointrcnn_resnet50_fpn", "s", 16, "", [128]),
    (D, "retinanet_resnet50_fpn", "s", 13, "hw", [128, 160]),
    (D, "fcos_resnet50_fpn", "s", 16, "", [128]),
    (D, "ssd300_vgg16", "s", 11, "", [300]),
    (D, "ssdlite320_mobilenet_v3_large", "s", 14, "", [320]),
    (V, "r3d_18", "s", 13, "b", [64]),
    (V, "mc3_18", "d", 18, "b", [64]),
    (V, "r2plus1d_18", "s", 17, "b", [64]),
    (V, "s3d", "s", 11, "b", [224]),
    (V, "mvit_v1_b", "s", 17, "", [224]),
    (V, "swin3d_t", "s", 17, "", [64]),
    (F, "raft_small", "s", 17, "", [128]),
    (F, "raft_small", "d", 18, "", [128]),
]
FRAMES = 16


def make(kind, net):
    torch.manual_seed(0)
    where = {
        C: torchvision.models,
        S: torchvision.models.segmentation,
        D: torchvision.models.detection,
        V: torchvision.models.video,
        F: torchvision.models.optical_flow,
    }[kind]
    options = {"weights_backbone": None} if kind in (S, D) else {}
    if net in ("googlenet", "inception_v3"):
        options = {"init_weights": True, "aux_logits": False}
    if kind == D:
        options["num_classes"] = 5
        options |= {"box_score_thresh": 0.001, "box_detections_per_img": 8} if "rcnn" in net else {}
    model = getattr(where, net)(weights=None, **options).eval()
    if kind == D:
        spread(model)
    return model


def spread(model):
    """Drawn heads score all boxes alike: wider weights keep the boxes apart, so that their order is no matter of rounding."""
    generator = torch.Generator().manual_seed(1)
    for name, p in model.named_parameters():
        if p.ndim == 4 and "backbone" in name:
            p.data = torch.randn(p.shape, generator=generator) * (2.0 / p[0].numel()) ** 0.5
        elif any(x in name for x in ("cls", "bbox", "predictor", "class", "regression")) and p.ndim > 1:
            p.data = torch.randn(p.shape, generator=generator) * (1.0 / p[0].numel()) ** 0.5


class Output(torch.nn.Module):
    """Of a map of outputs the values; of a list of flows the last."""

    def __init__(self, net, kind):
        super().__init__()
        self.net, self.kind = net, kind

    def forward(self, *images):
        if self.kind == D:
            result = self.net(list(images))[0]
            return tuple(result.values())
        result = self.net(*images)
        return result["out"] if self.kind == S else result[-1] if self.kind == F else result


def images(kind, batch, size, wide):
    generator = torch.Generator().manual_seed(size + batch)
    if kind == D:
        return (torch.rand(3, size, wide, generator=generator),)
    if kind == F:
        return tuple(torch.rand(batch, 3, size, wide, generator=generator) * 2 - 1 for _ in range(2))
    shape = (batch, 3, FRAMES, size, wide) if kind == V else (batch, 3, size, wide)
    return (torch.randn(shape, generator=generator),)


def axes_of(kind, dynamic, names):
    places = {
        "b": (0, "batch"),
        "h": ((1 if kind == D else 3 if kind == V else 2), "height"),
        "w": ((2 if kind == D else 4 if kind == V else 3), "width"),
    }
    return {name: dict(places[letter] for letter in dynamic) for name in names} if dynamic else None


def collect(out, wanted, _cache):
    for kind, net, exporter, opset, dynamic, sizes in ROWS:
        name = "%s-%s-%s%d" % (kind, net, exporter, opset)
        if not wanted(name):
            continue
        module = Output(make(kind, net), kind).eval()
        names = ["image", "other"][: 2 if kind == F else 1]
        args = images(kind, 2 if "b" in dynamic else 1, sizes[0], sizes[0])
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.onnx"
            try:
                case.exported(module, args, path, exporter == "d", opset, names, axes=axes_of(kind, dynamic, names))
            except Exception as error:
                print("%-44s cannot be exported: %s" % (name, str(error).replace("\n", " ")[:160]), flush=True)
                continue
            tried = [(1, sizes[0], sizes[0]), (3 if "b" in dynamic else 1, sizes[-1], sizes[-1]), (1, sizes[-1], sizes[0])]
            tried = [x for i, x in enumerate(tried) if x not in tried[:i]]
            case.write(out, "vision-" + name, path, [case.feed_of(names, images(kind, *x)) for x in tried])
