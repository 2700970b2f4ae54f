"""The benchmark's ResNets in PyTorch, layer for layer, timed as sluice-bench times itself.

Prints one JSON line: images_per_sec, step_seconds (median), first_step_seconds, peak_rss_mib, startup_rss_mib.
Tuned as the peer deserves: channels_last, malloc that never gives memory back (the caller sets MALLOC_* in the environment),
thread count given, oneDNN on. --weights FILE.npz loads our variables (TensorFlow layouts and names) and --logits FILE.npy
writes the logits of --images FILE.npy instead of timing.
"""
import argparse
import json
import resource
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def rss_mib():
    with open("/proc/self/status") as f:
        for line in f:
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024


STAGES = {"resnet50": (3, 4, 6, 3), "resnet101": (3, 4, 23, 3), "resnet152": (3, 8, 36, 3)}


class ConvBn(nn.Module):
    def __init__(self, cin, cout, k, stride=1, relu=True):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, k, stride, padding=(k - 1) // 2, bias=False)
        self.bn = nn.BatchNorm2d(cout, eps=1e-5, momentum=0.1)
        self.relu = relu

    def forward(self, x):
        x = self.bn(self.conv(x))
        return F.relu(x, inplace=True) if self.relu else x


class Unit(nn.Module):
    """Bottleneck: version 1 strides in the first 1x1, version 1.5 in the 3x3."""

    def __init__(self, cin, depth, bottleneck, stride, v15):
        super().__init__()
        self.shortcut = ConvBn(cin, depth, 1, stride, relu=False) if cin != depth else None
        self.a = ConvBn(cin, bottleneck, 1, 1 if v15 else stride)
        self.b = ConvBn(bottleneck, bottleneck, 3, stride if v15 else 1)
        self.c = ConvBn(bottleneck, depth, 1, 1, relu=False)

    def forward(self, x):
        s = x if self.shortcut is None else self.shortcut(x)
        return F.relu(self.c(self.b(self.a(x))).add_(s), inplace=True)


class ResNet(nn.Module):
    def __init__(self, stages, v15, classes=1001):
        super().__init__()
        self.root = ConvBn(3, 64, 7, 2)
        units, cin = [], 64
        for stage, count in enumerate(stages):
            depth = 256 << stage
            for i in range(count):
                units.append(Unit(cin, depth, depth // 4, 2 if i == 0 and stage > 0 else 1, v15))
                cin = depth
        self.units = nn.Sequential(*units)
        self.fc = nn.Linear(cin, classes)

    def forward(self, x):
        x = self.root(x)
        x = F.max_pool2d(F.pad(x, (0, 1, 0, 1), value=float("-inf")), 3, 2)  # SAME: the odd cell goes after
        return self.fc(self.units(x).mean((2, 3)))

    def conv_bns(self):
        """In the order in which our builder makes them: root, then shortcut, a, b, c of each unit."""
        yield self.root
        for u in self.units:
            yield from [m for m in (u.shortcut, u.a, u.b, u.c) if m is not None]

    def load(self, arrays, prefix="v/cg/"):
        def t(name):
            return torch.from_numpy(np.ascontiguousarray(arrays[prefix + name]))

        names = sorted((n for n in arrays if n.endswith("conv2d/kernel")), key=list(arrays).index)
        for name, m in zip(names, self.conv_bns(), strict=True):
            scope = name[len(prefix):-len("conv2d/kernel")]
            bn = next(s for s in ("batchnorm%s/" % scope.rstrip("/").rsplit("conv", 1)[1], ) if True)
            bn = scope + bn
            with torch.no_grad():
                m.conv.weight.copy_(t(scope + "conv2d/kernel").permute(3, 2, 0, 1))
                m.bn.weight.copy_(t(bn + "gamma"))
                m.bn.bias.copy_(t(bn + "beta"))
                m.bn.running_mean.copy_(t(bn + "moving_mean"))
                m.bn.running_var.copy_(t(bn + "moving_variance"))
        affine = [n for n in arrays if n.endswith("weights") and "affine" in n][-1][len(prefix):-len("weights")]
        with torch.no_grad():
            self.fc.weight.copy_(t(affine + "weights").T)
            self.fc.bias.copy_(t(affine + "biases"))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--model", default="resnet50_v1.5")
    p.add_argument("--batch_size", type=int, default=16)
    p.add_argument("--steps", type=int, default=8)
    p.add_argument("--warmup", type=int, default=3)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--forward_only", action="store_true")
    p.add_argument("--weights")
    p.add_argument("--images")
    p.add_argument("--logits")
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    startup = rss_mib()
    v15 = a.model.endswith("_v1.5")
    net = ResNet(STAGES[a.model.removesuffix("_v1.5")], v15)
    if a.weights:
        net.load(dict(np.load(a.weights)))
    net = net.to(memory_format=torch.channels_last)
    if a.logits:
        net.eval()
        with torch.no_grad():
            x = torch.from_numpy(np.load(a.images)).permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)
            np.save(a.logits, net(x).numpy())
        return
    x = torch.randn(a.batch_size, 3, 224, 224).contiguous(memory_format=torch.channels_last)
    y = torch.randint(0, 1001, (a.batch_size,))
    if a.forward_only:
        net.eval()
        net = torch.jit.freeze(torch.jit.trace(net, x))  # folds batch norm
        net = torch.jit.optimize_for_inference(net)

        def step():
            with torch.no_grad():
                return net(x)
    else:
        net.train()
        opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=4e-5, foreach=True)

        def step():
            opt.zero_grad(set_to_none=True)
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            opt.step()
            return loss.item()

    times = []
    for _ in range(a.warmup + a.steps):
        t = time.perf_counter()
        step()
        times.append(time.perf_counter() - t)
    timed = sorted(times[a.warmup:])
    median = timed[len(timed) // 2]
    print(json.dumps({
        "peer": "torch " + torch.__version__, "images_per_sec": a.batch_size / median, "step_seconds": median,
        "best_step_seconds": timed[0], "first_step_seconds": times[0],
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "startup_rss_mib": startup}))


if __name__ == "__main__":
    main()
