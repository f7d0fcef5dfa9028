import pytest
import torch

from ploc_lab.models import build


def test_has_the_probes_number_of_parameters():
    assert sum(p.numel() for p in build("cnn", 3072, 10).parameters()) == 427_178


def test_reads_flat_rows_and_images_alike():
    net = build("cnn", 3072, 10).eval()
    images = torch.rand(2, 3, 32, 32)
    torch.testing.assert_close(net(images), net(images.flatten(1)))


def test_normalises_its_input_inside():
    net = build("cnn", 3072, 10).eval()
    seen = []
    net.blocks[0].register_forward_pre_hook(lambda _module, args: seen.append(args[0]))
    mean = torch.tensor([0.4914, 0.4822, 0.4465]).view(1, 3, 1, 1).expand(1, 3, 32, 32)
    net(mean)
    assert seen[0].abs().max() < 1e-6


def test_one_image_alone_runs_in_training_mode():
    net = build("cnn", 3072, 10).train()
    assert net(torch.rand(1, 3072)).isfinite().all()


def test_other_image_sizes_are_refused():
    with pytest.raises(ValueError, match="3072 values a row, not 784"):
        build("cnn", 784)
