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


class PlainAttention(nn.MultiheadAttention):
    """nn.MultiheadAttention takes a fused path in eval mode that has no ONNX form; this takes the written-out one."""

    def forward(self, query, key, value, **options):
        q, k, v = (t.transpose(0, 1) if self.batch_first else t for t in (query, key, value))
        if query is key and key is value:
            k = v = q  # multi_head_attention_forward recognises self-attention by identity
        out, weights = F.multi_head_attention_forward(
            q, k, v, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias,
            None, None, False, 0.0, self.out_proj.weight, self.out_proj.bias, training=False, **options)
        return out.transpose(0, 1) if self.batch_first else out, weights


def plain_attention(model):
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


class Projection(nn.Module):
    """GPT-2's linear layer: weights as [in, out], the rows flattened around one Gemm."""

    def __init__(self, cin, cout):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(cin, cout).normal_(0, cin ** -0.5))
        self.bias = nn.Parameter(torch.empty(cout).normal_(0, 0.1))
        self.cout = cout

    def forward(self, x):
        flat = torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight)
        return flat.view(x.size(0), x.size(1), self.cout)


class GptBlock(nn.Module):
    def __init__(self, hidden, heads, positions):
        super().__init__()
        self.heads, self.size = heads, hidden // heads
        self.ln_1, self.ln_2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.attention, self.attention_out = Projection(hidden, 3 * hidden), Projection(hidden, hidden)
        self.inner, self.out = Projection(hidden, 4 * hidden), Projection(4 * hidden, hidden)
        self.register_buffer("causal", torch.ones(positions, positions).tril().bool()[None, None])

    def forward(self, x):
        batch, length = x.size(0), x.size(1)
        q, k, v = (part.view(batch, length, self.heads, self.size).permute(0, 2, 1, 3)
                   for part in self.attention(self.ln_1(x)).split(self.heads * self.size, dim=2))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.size)
        scores = torch.where(self.causal[:, :, :length, :length], scores, torch.tensor(-1e4))
        mixed = torch.matmul(torch.softmax(scores, -1), v).permute(0, 2, 1, 3).contiguous()
        x = x + self.attention_out(mixed.view(batch, length, self.heads * self.size))
        inner = self.inner(self.ln_2(x))
        inner = 0.5 * inner * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (inner + 0.044715 * torch.pow(inner, 3.0))))
        return x + self.out(inner)


class Gpt2(nn.Module):
    """GPT-2 as published: learned positions, pre-norm blocks, tanh GELU, the word embedding again as output layer."""

    def __init__(self, layers=12, hidden=768, heads=12, vocabulary=50257, positions=1024):
        super().__init__()
        self.word, self.position = nn.Embedding(vocabulary, hidden), nn.Embedding(positions, hidden)
        nn.init.normal_(self.word.weight, 0, hidden ** -0.5)
        self.blocks = nn.ModuleList(GptBlock(hidden, heads, positions) for _ in range(layers))
        self.ln_f = nn.LayerNorm(hidden)

    def forward(self, input_ids):
        x = self.word(input_ids) + self.position(torch.arange(input_ids.size(1))[None])
        for block in self.blocks:
            x = block(x)
        return torch.matmul(self.ln_f(x), self.word.weight.t())


class Recurrent(nn.Module):
    """A recurrent stack over [batch, sequence, features] with a linear layer on every step."""

    def __init__(self, kind, **options):
        super().__init__()
        self.cells = kind(32, 64, batch_first=True, **options)
        self.head = nn.Linear(128 if self.cells.bidirectional else 64, 20)

    def forward(self, x):
        return self.head(self.cells(x)[0])


class StatefulLstm(Recurrent):
    """The state goes in and out, so that a stream can be run piece by piece."""

    def __init__(self):
        super().__init__(nn.LSTM, num_layers=2)

    def forward(self, x, h, c):
        y, (h, c) = self.cells(x, (h, c))
        return self.head(y), h, c


class Crnn(nn.Module):
    """Text recognition: convolutions squeeze the height to 1, a bidirectional LSTM reads along the width."""

    def __init__(self, classes=37, hidden=128):
        super().__init__()

        def stage(cin, cout, pool):
            return nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(), nn.MaxPool2d(pool)

        self.features = nn.Sequential(
            *stage(1, 32, 2), *stage(32, 64, 2), *stage(64, 128, (2, 1)), *stage(128, 128, (4, 1)))
        self.cells = nn.LSTM(128, hidden, num_layers=2, bidirectional=True)
        self.head = nn.Linear(2 * hidden, classes)

    def forward(self, image):
        x = self.features(image).squeeze(2).permute(2, 0, 1)
        return torch.log_softmax(self.head(self.cells(x)[0]), 2)


class EncoderDecoder(nn.Module):
    """torch's own nn.Transformer between two embeddings and a linear layer; padding of the source is masked."""

    def __init__(self, vocabulary=1000, hidden=128, positions=512):
        super().__init__()
        self.word, self.position = nn.Embedding(vocabulary, hidden), nn.Embedding(positions, hidden)
        self.body = nn.Transformer(hidden, 4, num_encoder_layers=3, num_decoder_layers=3, dim_feedforward=4 * hidden,
                                   dropout=0.0, activation=F.silu)
        self.head = nn.Linear(hidden, vocabulary)

    def embed(self, ids):
        return (self.word(ids) + self.position(torch.arange(ids.size(1))[None])).transpose(0, 1)

    def forward(self, source, padding, target):
        causal = torch.ones(target.size(1), target.size(1)).triu(1).bool()
        y = self.body(self.embed(source), self.embed(target), tgt_mask=causal, src_key_padding_mask=padding,
                      memory_key_padding_mask=padding)
        return self.head(y.transpose(0, 1))


class Detector(nn.Module):
    """ssdlite320 from an image of any size to boxes, scores and labels; the number of detections depends on the data.
    The usual threshold would keep the 300 best, whose order rounding decides; this one keeps tens, far enough apart."""

    def __init__(self):
        super().__init__()
        self.body = tv.detection.ssdlite320_mobilenet_v3_large(
            weights=None, weights_backbone=None, score_thresh=0.4)

    def forward(self, image):
        found = self.body([image])
        found = found[1] if isinstance(found, tuple) else found  # a scripted detector also gives its losses
        return found[0]["boxes"], found[0]["scores"], found[0]["labels"]


class SmallCnn(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1, groups=16), nn.ReLU6(),
            nn.Conv2d(16, 32, 1), nn.MaxPool2d(2), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


class Model:
    """build: constructor; shape: one sample of the input; keep_bn: BatchNormalization stays a node and tied weights stay
    tied (the engine's folding is what is tested), else the exporter folds constants; script: torch.jit.script, for real
    control flow."""

    def __init__(self, build, shape=(3, 224, 224), opset=13, keep_bn=False, script=False):
        self.build, self.shape, self.opset, self.keep_bn, self.script = build, shape, opset, keep_bn, script

    def inputs(self, batch):
        return (torch.rand(batch, *self.shape) - 0.5,)

    def axes(self):
        return {value: {0: "batch"} for value in self.input_names + self.output_names}

    input_names, output_names = ["input"], ["output"]


class TextModel(Model):
    input_names = ["input_ids", "attention_mask", "token_type_ids"]
    output_names = ["last_hidden_state", "pooler_output"]

    def inputs(self, batch):
        return tuple(torch.randint(0, 2, (batch, *self.shape)) for _ in self.input_names)


class TokenModel(Model):
    """One input of token numbers, [batch, sequence], both dynamic."""
    input_names, output_names = ["input_ids"], ["logits"]

    def __init__(self, build, vocabulary, **options):
        super().__init__(build, (128,), **options)
        self.vocabulary = vocabulary

    def inputs(self, batch):
        return (torch.randint(0, self.vocabulary, (batch, *self.shape)),)

    def axes(self):
        return {value: {0: "batch", 1: "sequence"} for value in ("input_ids", "logits")}


class SequenceModel(Model):
    """[batch, sequence, 32] in, [batch, sequence, classes] out, batch and sequence dynamic."""

    def axes(self):
        return {value: {0: "batch", 1: "sequence"} for value in ("input", "output")}


class StateModel(SequenceModel):
    input_names, output_names = ["input", "h", "c"], ["output", "h_out", "c_out"]

    def inputs(self, batch):
        return (*super().inputs(batch), torch.rand(2, batch, 64) - 0.5, torch.rand(2, batch, 64) - 0.5)

    def axes(self):
        return {**super().axes(), **{value: {1: "batch"} for value in ("h", "c", "h_out", "c_out")}}


class CrnnModel(Model):
    def axes(self):
        return {"input": {0: "batch", 3: "width"}, "output": {0: "sequence", 1: "batch"}}


class TranslationModel(Model):
    input_names, output_names = ["source", "padding", "target"], ["output"]

    def inputs(self, batch):
        source, target = torch.randint(0, 1000, (batch, 20)), torch.randint(0, 1000, (batch, 12))
        return source, torch.arange(20)[None] >= 20 - 4 * torch.arange(batch)[:, None], target

    def axes(self):
        return {"source": {0: "batch", 1: "source_length"}, "padding": {0: "batch", 1: "source_length"},
                "target": {0: "batch", 1: "target_length"}, "output": {0: "batch", 1: "target_length"}}


class DetectionModel(Model):
    input_names, output_names = ["image"], ["boxes", "scores", "labels"]

    def inputs(self, batch):
        return (F.interpolate(torch.rand(1, 3, 12, 15), self.shape[1:], mode="bilinear")[0],)  # smooth, as photographs are

    def axes(self):
        return {"image": {1: "height", 2: "width"}, **{value: {0: "detections"} for value in self.output_names}}


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
    "vit_b_16": Model(lambda: plain_attention(tv.vit_b_16()), opset=17),
    "swin_t": Model(tv.swin_t, opset=16),
    "unet": Model(Unet, (3, 128, 128), keep_bn=True),
    "bert_base": TextModel(Bert, (128,), opset=14),
    "minilm6": TextModel(lambda: Bert(layers=6, hidden=384), (128,), opset=17),
    "gpt2": TokenModel(Gpt2, 50257, keep_bn=True),
    "gpt2_tiny": TokenModel(lambda: Gpt2(2, 64, 4, 1000, 256), 1000, opset=17),
    "bilstm": SequenceModel(lambda: Recurrent(nn.LSTM, num_layers=2, bidirectional=True), (24, 32)),
    "gru": SequenceModel(lambda: Recurrent(nn.GRU, num_layers=2), (24, 32)),
    "stateful_lstm": StateModel(StatefulLstm, (24, 32), opset=15),
    "crnn": CrnnModel(Crnn, (1, 32, 100), keep_bn=True),
    "encoder_decoder": TranslationModel(lambda: plain_attention(EncoderDecoder()), opset=14),
    "ssdlite320_mobilenet_v3": DetectionModel(Detector, (3, 240, 300), keep_bn=True),
    "small_cnn": Model(SmallCnn, (3, 32, 32)),
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
        moved = (out.max(0)[0] - out.min(0)[0]).abs().max().item()
        if not torch.isfinite(out).all() or out.abs().max() > 1e3 or moved < 1e-2:
            raise SystemExit(f"{name}: outputs out of range: max {out.abs().max():.3g}, spread over inputs {moved:.3g}")


def export(name, spec, folder):
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
        dynamic_axes=spec.axes(),
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
        path, parameters, outputs = export(name, MODELS[name], args.out)
        spread = "  ".join(f"{list(o.shape[1:])} max {o.abs().max():.3g} std {o.float().std():.3g}" for o in outputs)
        print(f"{name:20} {parameters:12,} parameters {path.stat().st_size / 1e6:8.2f} MB "
              f"{time.monotonic() - start:5.1f} s  {spread}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
