"""Trains the network that the command embeds, and writes digits.onnx, digits_images.npy and digits_labels.npy here.

    /usr/bin/python3 models/train_digits.py [--out DIR]

Data: the 1797 handwritten digits of scikit-learn (Debian's python3-sklearn ships them), 8x8 pixels, values 0..16.
The network's input "image" [batch, 1, 8, 8] is pixel / 16, its output "logits" [batch, 10]. The .npy files hold the 360
held-back samples: images uint8 [360, 1, 8, 8] as pixels (divide by 16), labels uint8 [360]. Nothing of the held-back
samples is used in training, nor to choose when to stop. The same packages on the same machine give the same files.
"""
import argparse
import pathlib

import numpy as np
import torch
from torch import nn
from torch.onnx import TrainingMode
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED, EPOCHS, BATCH, HELD_BACK, SCALE = 0, 40, 32, 360, 16.0


def block(cin, cout):
    return [nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU()]


def train(images, labels):
    model = nn.Sequential(*block(1, 16), *block(16, 32), nn.MaxPool2d(2), *block(32, 32), nn.MaxPool2d(2),
                          nn.Flatten(), nn.Linear(128, 10))
    steps = EPOCHS * (len(images) // BATCH)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=5e-3, total_steps=steps)
    for _ in range(EPOCHS):
        order = torch.randperm(len(images))
        for part in order[:len(order) // BATCH * BATCH].view(-1, BATCH):
            loss = nn.functional.cross_entropy(model(images[part]), labels[part])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    return model.eval()


def accuracy(model, images, labels):
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description="Trains and exports the embedded digits model.")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent, metavar="DIR")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # the order of summation must not depend on the machine's cores
    torch.use_deterministic_algorithms(True)

    data = load_digits()
    pixels = data.images.astype(np.uint8)[:, None]
    parts = train_test_split(pixels, data.target.astype(np.uint8), test_size=HELD_BACK, random_state=SEED,
                             stratify=data.target)
    x, x_held, y, y_held = (torch.from_numpy(part) for part in parts)
    x, x_held, y, y_held = x / SCALE, x_held / SCALE, y.long(), y_held.long()

    model = train(x, y)
    held = accuracy(model, x_held, y_held)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters; accuracy: {len(x)} training images "
          f"{accuracy(model, x, y):.2%}, {len(x_held)} held-back images {held:.2%}")
    if held < 0.98:
        raise SystemExit("held-back accuracy below 98 %: nothing written")

    # PRESERVE keeps BatchNormalization as nodes: the engine's folding is part of what the demo shows.
    torch.onnx.export(model, x_held[:2], str(out / "digits.onnx"), opset_version=13, input_names=["image"],
                      output_names=["logits"], dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}},
                      training=TrainingMode.PRESERVE, do_constant_folding=False)
    np.save(out / "digits_images.npy", parts[1])
    np.save(out / "digits_labels.npy", parts[3])


if __name__ == "__main__":
    main()
