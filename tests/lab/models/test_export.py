import numpy as np
import onnxruntime
import pytest
import torch

from ploc_lab.models import Checkpoint, build
from ploc_lab.models.export import to_onnx
from ploc_lab.models.trees import LightGBM


@pytest.mark.parametrize(
    ("backbone", "d", "classes"),
    [("mlp", 12, 2), ("ft_transformer", 12, 2), ("tab_transformer", 12, 3), ("cnn", 3072, 10)],
)
def test_onnx_gives_the_same_logits(tmp_path, backbone, d, classes):
    torch.manual_seed(0)
    net = build(backbone, d, classes).eval()
    path = tmp_path / "net.onnx"
    to_onnx(Checkpoint(tmp_path, {"backbone": backbone, "d": d}, net), path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for rows in (1, 7):
        x = np.random.default_rng(rows).random((rows, d), dtype=np.float32)
        (logits,) = session.run(["logits"], {"x": x})
        with torch.inference_mode():
            np.testing.assert_allclose(logits, net(torch.from_numpy(x)).numpy(), rtol=1e-4, atol=1e-5)


def test_trees_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    trees = LightGBM.fit(rng.random((50, 2), dtype=np.float32), np.arange(50) % 2, seed=0)
    with pytest.raises(ValueError, match="lightgbm is no network"):
        to_onnx(Checkpoint(tmp_path, {"backbone": "lightgbm", "d": 2}, trees), tmp_path / "net.onnx")
    assert not (tmp_path / "net.onnx").exists()
