import pytest
import rtdl
import torch

from ploc_lab.models import build


def peer_of(net, d):
    """rtdl's FT-Transformer in TableShift's configuration, with our weights."""
    peer = rtdl.FTTransformer.make_baseline(
        n_num_features=d,
        cat_cardinalities=None,
        d_token=64,
        n_blocks=1,
        attention_dropout=0.0,
        ffn_d_hidden=64,
        ffn_dropout=0.0,
        residual_dropout=0.0,
        last_layer_query_idx=[-1],
        d_out=1,
    )
    ours = net.state_dict()
    block = "transformer.blocks.0"
    names = {
        "feature_tokenizer.weight": "feature_tokenizer.num_tokenizer.weight",
        "feature_tokenizer.bias": "feature_tokenizer.num_tokenizer.bias",
        "cls_token": "cls_token.weight",
        **{
            f"attention.{m}.{p}": f"{block}.attention.{m}.{p}"
            for m in ("W_q", "W_k", "W_v", "W_out")
            for p in ("weight", "bias")
        },
        **{
            f"ffn.{m}.{p}": f"{block}.ffn.{m}.{p}"
            for m in ("linear_first", "linear_second")
            for p in ("weight", "bias")
        },
        **{f"ffn_normalization.{p}": f"{block}.ffn_normalization.{p}" for p in ("weight", "bias")},
        **{f"head_normalization.{p}": f"transformer.head.normalization.{p}" for p in ("weight", "bias")},
        **{f"head.{p}": f"transformer.head.linear.{p}" for p in ("weight", "bias")},
    }
    assert set(names) == set(ours)
    peer.load_state_dict({theirs: ours[name] for name, theirs in names.items()})
    return peer.eval()


@pytest.fixture
def net():
    torch.manual_seed(3)
    net = build("ft_transformer", 38)
    with torch.no_grad():  # also what is zero or one at initialisation must land in the right place
        for parameter in net.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return net


@pytest.mark.parametrize(("d", "published"), [(38, 34_369), (26, 32_833), (183, 52_929), (365, 76_225)])
def test_has_as_many_parameters_as_the_benchmarks_checkpoints(d, published):
    assert sum(p.numel() for p in build("ft_transformer", d).parameters()) == published


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_agrees_with_rtdl_on_copied_weights(net, dtype):
    x = 2 * torch.randn(64, 38, dtype=dtype)
    peer, ours = peer_of(net, 38).to(dtype), net.to(dtype)
    torch.testing.assert_close(ours(x), peer(x, None))


def test_has_rtdls_gradients(net):
    x = torch.randn(16, 38, dtype=torch.float64)
    peer, ours = peer_of(net, 38).double(), net.double()
    ours(x).square().sum().backward()
    peer(x, None).square().sum().backward()
    attention = peer.transformer.blocks[0].attention
    pairs = [
        (ours.feature_tokenizer.weight, peer.feature_tokenizer.num_tokenizer.weight),
        (ours.cls_token, peer.cls_token.weight),
        (ours.attention.W_q.weight, attention.W_q.weight),
        (ours.attention.W_v.bias, attention.W_v.bias),
    ]
    for mine, theirs in pairs:
        torch.testing.assert_close(mine.grad, theirs.grad)


def test_is_initialised_as_rtdl_initialises():
    torch.manual_seed(0)
    net = build("ft_transformer", 2000)
    for table in (net.feature_tokenizer.weight, net.feature_tokenizer.bias):
        assert table.abs().max() <= 1 / 8  # uniform within 1 / sqrt(64)
        assert table.std().item() == pytest.approx(1 / 8 / 3**0.5, rel=0.01)
    assert net.cls_token.shape == (64,)
    assert not any(getattr(net.attention, name).bias.any() for name in ("W_q", "W_k", "W_v", "W_out"))


def test_same_parameters_are_spared_the_weight_decay_as_in_rtdl(net):
    from ploc_lab.models.recipe import find

    spared_by_rtdl = peer_of(net, 38).optimization_param_groups()[1]["params"]
    ours = [
        p
        for name, p in net.named_parameters()
        if any(part in name for part in find("ft_transformer").no_decay)
    ]
    assert sorted(p.numel() for p in ours) == sorted(p.numel() for p in spared_by_rtdl)
