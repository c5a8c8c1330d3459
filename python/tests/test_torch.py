"""A PyTorch module, profiled."""

import pytest

torch = pytest.importorskip("torch", reason="python3-torch is not installed")
pytest.importorskip("onnx", reason="python3-onnx is not installed")

import prony  # noqa: E402
import prony.torch  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = torch.nn.Conv2d(width, width, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(width)
        self.act = torch.nn.ReLU()

    def forward(self, x):
        return self.act(self.norm(self.conv(x))) + x


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.Sequential(Block(4), Block(4))
        self.head = torch.nn.Linear(4, 3)

    def forward(self, image, scale=None):
        made = self.head(self.blocks(image).mean((2, 3)))
        return made if scale is None else made * scale


def test_rows_are_the_modules():
    net = Net()
    report = prony.torch.profile(net, torch.randn(1, 4, 8, 8), threads=1, runs=5)
    rows = {row["path"]: row for row in report.module_rows}
    assert {"", "blocks", "blocks.0", "blocks.1", "blocks.0.conv", "blocks.1.act", "head"} <= set(rows) <= set(dict(net.named_modules()))
    assert rows["blocks.0"]["class_name"] == "Block" and rows["head"]["class_name"] == "Linear"
    assert rows["head"]["macs"] == 12 and rows["blocks.0.conv"]["macs"] == 4 * 4 * 9 * 64 == rows["blocks.1"]["macs"]
    assert rows["head"]["own_parameters"] == 15 == rows["head"]["parameters"]
    assert rows[""]["macs"] == report.totals["macs"] and rows[""]["time_mean_ns"] > 0
    assert net.training


def test_several_inputs_and_keywords():
    report = prony.torch.profile(Net(), (torch.randn(2, 4, 8, 8),), kwargs={"scale": torch.ones(3)}, runs=2)
    assert [port["name"] for port in report.data["model"]["inputs"]] == ["image", "scale"]


def test_static_and_kept(tmp_path):
    assert prony.torch.inspect_module(Net(), torch.randn(1, 4, 8, 8)).module_rows[0]["path"] == ""
    path = str(tmp_path / "net.onnx")
    prony.torch.profile(Net(), torch.randn(1, 4, 8, 8), keep=path, runs=1)
    assert prony.inspect(path).totals["macs"] == 2 * 9216 + 12


def test_frame():
    pytest.importorskip("pandas")
    report = prony.torch.profile(Net(), torch.randn(1, 4, 8, 8), runs=2)
    assert report.module_frame.loc["head", "class_name"] == "Linear"


def test_tensors_are_not_copied():
    net, x = torch.nn.Linear(8, 4), torch.randn(2, 8)
    import io

    file = io.BytesIO()
    torch.onnx.export(net, x, file, input_names=["x"], output_names=["y"])
    session = prony.Session(file.getvalue())
    y = session.run({"x": x})["y"]
    assert session._addresses()["x"] == x.data_ptr()
    assert torch.allclose(torch.from_numpy(y), net(x), atol=1e-5)
    with pytest.raises(prony.InvalidArgument, match="requires a gradient"):
        session.run({"x": x.clone().requires_grad_()})


@pytest.mark.parametrize("given,expected",
                         [("layer1/layer1.0/conv1", "layer1.0.conv1"), ("features/features.0/features.0.0", "features.0.0"),
                          ("a/b/c", "a.b.c"), ("", ""), ("layer2/layer2.0/downsample/downsample.0", "layer2.0.downsample.0")])
def test_paths(given, expected):
    assert prony.torch._module_path(given) == expected
