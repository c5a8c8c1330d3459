"""Exports the test models to ONNX: fixed seed, random weights, dynamic dimension "batch".

    /usr/bin/python3 models/export_models.py --out DIR [NAME ...]     (no NAME: all of them)
    /usr/bin/python3 models/export_models.py --list

Needs Debian's python3-torch and python3-torchvision. Nothing is downloaded. Random weights are only a fair test of
an engine when every part of a model moves its output, so `settle` walks through the model once and gives each
layer an output of moderate size, every bias, scale and running statistic a value of its own, and BatchNorm
statistics that are near the real ones but not equal to them.
"""
import argparse
import math
import pathlib
import sys
import time
import warnings

import torch
from torch import nn
from torch.nn import functional as F
from torch.onnx import TrainingMode
import torchvision.models as tv

SEED = 0


class Lenet5(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2),
            nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten(),
            nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10))


class Conv4(nn.Sequential):
    def __init__(self):
        super().__init__(*(nn.Conv2d(cin, cout, 3, padding=1) for cin, cout in ((3, 16), (16, 32), (32, 32), (32, 16))))


def resnet18_cifar():
    """ResNet-18 for 32x32 images: 3x3 stem of stride 1, no max pool, 100 classes."""
    model = tv.resnet18(num_classes=100)
    model.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
    model.maxpool = nn.Identity()
    return model


def vit_b_16():
    """nn.MultiheadAttention takes a fused path in eval mode that has no ONNX form; this takes the written-out one."""
    class PlainAttention(nn.MultiheadAttention):
        def forward(self, query, key, value, need_weights=True):
            q, k, v = (t.transpose(0, 1) for t in (query, key, value))
            if query is key and key is value:
                k = v = q  # multi_head_attention_forward recognises self-attention by identity
            out, weights = F.multi_head_attention_forward(
                q, k, v, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias,
                None, None, False, 0.0, self.out_proj.weight, self.out_proj.bias,
                training=False, need_weights=need_weights)
            return out.transpose(0, 1), weights

    model = tv.vit_b_16()
    for module in model.modules():
        if type(module) is nn.MultiheadAttention:
            module.__class__ = PlainAttention
    return model


class Unet(nn.Module):
    """The usual U-Net at a quarter of the usual width: four 2x steps down and up, transposed convolutions."""

    def __init__(self, channels=3, classes=2, width=32):
        super().__init__()

        def twice(cin, cout):
            return nn.Sequential(
                nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
                nn.Conv2d(cout, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))

        widths = [width << k for k in range(5)]
        self.down = nn.ModuleList(twice(cin, cout) for cin, cout in zip([channels] + widths, widths))
        self.pool = nn.MaxPool2d(2)
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in reversed(widths[:-1]))
        self.merge = nn.ModuleList(twice(2 * w, w) for w in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        kept = []
        for k, stage in enumerate(self.down):
            x = stage(x if k == 0 else self.pool(x))
            kept.append(x)
        for up, merge, skip in zip(self.up, self.merge, reversed(kept[:-1])):
            x = merge(torch.cat((skip, up(x)), 1))
        return self.head(x)


class BertLayer(nn.Module):
    def __init__(self, hidden, heads, inner):
        super().__init__()
        self.heads, self.size = heads, hidden // heads
        self.query, self.key, self.value = (nn.Linear(hidden, hidden) for _ in range(3))
        self.attention_out, self.attention_norm = nn.Linear(hidden, hidden), nn.LayerNorm(hidden, eps=1e-12)
        self.inner, self.out = nn.Linear(hidden, inner), nn.Linear(inner, hidden)
        self.out_norm = nn.LayerNorm(hidden, eps=1e-12)

    def split(self, x):
        return x.view(x.size(0), x.size(1), self.heads, self.size).permute(0, 2, 1, 3)

    def forward(self, x, mask):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.size) + mask
        mixed = torch.matmul(torch.softmax(scores, -1), v).permute(0, 2, 1, 3).contiguous()
        mixed = mixed.view(mixed.size(0), mixed.size(1), self.heads * self.size)
        x = self.attention_norm(self.attention_out(mixed) + x)
        return self.out_norm(self.out(F.gelu(self.inner(x))) + x)


class Bert(nn.Module):
    """BERT as published: embeddings, post-norm encoder with erf GELU, tanh pooler."""

    def __init__(self, layers=12, hidden=768, heads=12, vocabulary=30522, positions=512):
        super().__init__()
        self.word, self.position = nn.Embedding(vocabulary, hidden), nn.Embedding(positions, hidden)
        self.token_type = nn.Embedding(2, hidden)
        self.norm = nn.LayerNorm(hidden, eps=1e-12)
        self.layers = nn.ModuleList(BertLayer(hidden, heads, 4 * hidden) for _ in range(layers))
        self.pooler = nn.Linear(hidden, hidden)
        self.register_buffer("position_ids", torch.arange(positions).expand(1, -1))

    def forward(self, input_ids, attention_mask, token_type_ids):
        ids = self.position_ids[:, :input_ids.size(1)]
        x = self.norm(self.word(input_ids) + self.token_type(token_type_ids) + self.position(ids))
        mask = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * -10000.0
        for layer in self.layers:
            x = layer(x, mask)
        return x, torch.tanh(self.pooler(x[:, 0]))


class IfTwoBranch(nn.Module):
    """The sign of the input's sum picks the branch, at run time; both read the outer graph's values and weights."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(16, 32)
        self.left = nn.Linear(32, 8)
        self.right = nn.Linear(32, 24)
        self.right_out = nn.Linear(24, 8)

    def forward(self, input):
        x = torch.relu(self.stem(input))
        if bool(input.sum() > 0):
            y = torch.sigmoid(self.left(x)) * 2.0
        else:
            y = self.right_out(torch.tanh(self.right(x))) - x.mean(1, keepdim=True)
        return y + 1.0


class Model:
    """build: constructor; shape: one sample of the input; keep_bn: BatchNormalization stays a node (the engine's
    folding is what is tested), else the exporter folds it; script: torch.jit.script, for real control flow."""

    def __init__(self, build, shape=(3, 224, 224), opset=13, keep_bn=False, script=False):
        self.build, self.shape, self.opset, self.keep_bn, self.script = build, shape, opset, keep_bn, script

    def inputs(self, batch):
        return (torch.rand(batch, *self.shape) - 0.5,)

    input_names, output_names = ["input"], ["output"]


class TextModel(Model):
    input_names = ["input_ids", "attention_mask", "token_type_ids"]
    output_names = ["last_hidden_state", "pooler_output"]

    def inputs(self, batch):
        return tuple(torch.randint(0, 2, (batch, *self.shape)) for _ in self.input_names)


# Opsets differ on purpose: 13 writes LayerNorm and HardSwish out in primitives, 14 has HardSwish, 17 LayerNormalization.
MODELS = {
    "lenet5": Model(Lenet5, (1, 28, 28)),
    "conv4": Model(Conv4, (3, 32, 32)),
    "mlp": Model(lambda: nn.Sequential(nn.Linear(8, 32), nn.Sigmoid()), (8,)),
    "if_two_branch": Model(IfTwoBranch, (16,), script=True),
    "resnet18": Model(tv.resnet18, keep_bn=True),
    "resnet18_cifar": Model(resnet18_cifar, (3, 32, 32)),
    "resnet18_cifar_bn": Model(resnet18_cifar, (3, 32, 32), keep_bn=True),
    "resnet50": Model(tv.resnet50, keep_bn=True),
    "mobilenet_v2": Model(tv.mobilenet_v2, keep_bn=True),
    "mobilenet_v3_small": Model(tv.mobilenet_v3_small, keep_bn=True),
    "mobilenet_v3_large": Model(tv.mobilenet_v3_large, keep_bn=True, opset=15),
    "efficientnet_b0": Model(tv.efficientnet_b0, keep_bn=True),
    "squeezenet1_1": Model(tv.squeezenet1_1),
    "densenet121": Model(tv.densenet121, keep_bn=True, opset=14),
    "shufflenet_v2_x1_0": Model(tv.shufflenet_v2_x1_0, keep_bn=True),
    "vgg11": Model(tv.vgg11),
    "alexnet": Model(tv.alexnet),
    "googlenet": Model(lambda: tv.googlenet(aux_logits=False, init_weights=False), keep_bn=True, opset=16),
    "convnext_tiny": Model(tv.convnext_tiny, opset=17),
    "vit_b_16": Model(vit_b_16, opset=17),
    "unet": Model(Unet, (3, 128, 128), keep_bn=True),
    "bert_base": TextModel(Bert, (128,), opset=14),
    "minilm6": TextModel(lambda: Bert(layers=6, hidden=384), (128,), opset=17),
}


def settle(model, inputs):
    """Gives random weights that keep activations of moderate size and of which none is without effect."""
    norms = (nn.BatchNorm2d, nn.LayerNorm)
    for module in model.modules():
        if isinstance(module, norms):
            nn.init.uniform_(module.weight, 0.5, 1.5)
        if isinstance(getattr(module, "bias", None), nn.Parameter):
            nn.init.normal_(module.bias, 0, 0.1)
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, 0, module.in_features ** -0.5)  # some torchvision heads start at zero
        if isinstance(module, nn.MultiheadAttention):
            nn.init.normal_(module.in_proj_bias, 0, 0.1)
        if isinstance(getattr(module, "layer_scale", None), nn.Parameter):
            nn.init.uniform_(module.layer_scale, 0.2, 0.4)  # 1e-6 would hide every ConvNeXt block
        if isinstance(getattr(module, "class_token", None), nn.Parameter):
            nn.init.normal_(module.class_token)

    def near_statistics(module, args):
        x = args[0].transpose(0, 1).flatten(1)
        mean, var = x.mean(1), x.var(1).clamp_min(1e-2)
        module.running_mean.copy_(mean + var.sqrt() * torch.empty_like(mean).normal_(0, 0.1))
        module.running_var.copy_(var * torch.empty_like(var).uniform_(0.5, 1.5))

    def unit_output(module, args, output):
        size = output.std()
        if not 0.3 < size < 3:
            module.weight.div_(size)
            if module.bias is not None:
                module.bias.div_(size)
            return output / size

    hooks = []
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            hooks.append(module.register_forward_pre_hook(near_statistics))
        # Attention reads its output projection's weights without calling the module.
        elif isinstance(module, (nn.Conv2d, nn.ConvTranspose2d, nn.Linear)):
            hooks.append(module.register_forward_hook(unit_output))
    model(*inputs)
    for hook in hooks:
        hook.remove()


def check_range(name, outputs):
    """Refuses a model whose outputs could hide an engine's error: not finite, tiny, huge, or the same for any input."""
    for out in outputs:
        moved = (out[0] - out[1]).abs().max().item()
        if not torch.isfinite(out).all() or out.abs().max() > 1e3 or moved < 1e-2:
            raise SystemExit(f"{name}: outputs out of range: max {out.abs().max():.3g}, spread over inputs {moved:.3g}")


def export(name, folder):
    spec = MODELS[name]
    torch.manual_seed(SEED)
    model = spec.build().eval()
    with torch.no_grad():
        settle(model, spec.inputs(2))
        outputs = model(*spec.inputs(2))
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    check_range(name, outputs)
    path = folder / f"{name}.onnx"
    partial = path.with_suffix(".part")  # a run that is cut off leaves no half model behind
    torch.onnx.export(
        torch.jit.script(model) if spec.script else model, spec.inputs(2), str(partial), opset_version=spec.opset,
        input_names=spec.input_names, output_names=spec.output_names,
        dynamic_axes={value: {0: "batch"} for value in spec.input_names + spec.output_names},
        # PRESERVE keeps the model's eval mode but skips the exporter's folding of BatchNorm into Conv.
        training=TrainingMode.PRESERVE if spec.keep_bn else TrainingMode.EVAL, do_constant_folding=not spec.keep_bn)
    partial.rename(path)
    return path, sum(p.numel() for p in model.parameters()), outputs


def main():
    parser = argparse.ArgumentParser(description="Exports the test models to ONNX.")
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR", help="folder for NAME.onnx; made if absent")
    parser.add_argument("--list", action="store_true", help="names the models and stops")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    if args.list:
        print("\n".join(MODELS))
        return
    unknown = [name for name in args.names if name not in MODELS]
    if unknown or not args.out:
        parser.error(f"no such model: {', '.join(unknown)}" if unknown else "--out is required")
    torch.set_num_threads(1)  # the same weights on any machine of the same kind
    warnings.filterwarnings("ignore")
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.names or MODELS:
        start = time.monotonic()
        path, parameters, outputs = export(name, args.out)
        spread = "  ".join(f"{list(o.shape[1:])} max {o.abs().max():.3g} std {o.std():.3g}" for o in outputs)
        print(f"{name:20} {parameters:12,} parameters {path.stat().st_size / 1e6:8.2f} MB "
              f"{time.monotonic() - start:5.1f} s  {spread}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
