import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tab_transformer_pytorch import TabTransformer as Peer

from ploc_lab.models import build


def peer_of(net, categories, continuous):
    """The package's own network with our weights; its two special tokens are never looked up."""
    peer = Peer(
        categories=categories,
        num_continuous=continuous,
        dim=32,
        depth=6,
        heads=1,
        dim_out=1,
        attn_dropout=0.1,
        ff_dropout=0.1,
        mlp_hidden_mults=(4, 2),
    )
    state = peer.state_dict()
    ours = net.state_dict()
    state |= {f"norm.{p}": ours[f"norm.{p}"] for p in ("weight", "bias") if continuous}
    for mine, theirs in (("mlp.0", "mlp.mlp.0"), ("mlp.2", "mlp.mlp.2"), ("head", "mlp.mlp.4")):
        state |= {f"{theirs}.{p}": ours[f"{mine}.{p}"] for p in ("weight", "bias")}
    if categories:
        state["transformer.embeds.weight"] = torch.cat([torch.randn(2, 32), ours["embeds"]])
        parts = {
            "attention_norm": "0.fn.norm",
            "attention.to_qkv": "0.fn.fn.to_qkv",
            "attention.to_out": "0.fn.fn.to_out",
            "ffn_norm": "1.fn.norm",
            "ffn.linear_first": "1.fn.fn.net.0",
            "ffn.linear_second": "1.fn.fn.net.3",
        }
        for layer in range(6):
            for mine, theirs in parts.items():
                for p in ("weight", "bias"):
                    if f"layers.{layer}.{mine}.{p}" in ours:
                        state[f"transformer.layers.{layer}.{theirs}.{p}"] = ours[f"layers.{layer}.{mine}.{p}"]
    peer.load_state_dict(state)
    return peer.eval()


@pytest.mark.parametrize(
    ("d", "published"), [(38, 845), (26, 461), (183, 20_519), (365, 82_991), (134, 11_021)]
)
def test_has_the_published_number_of_live_parameters(d, published):
    assert sum(p.numel() for p in build("tab_transformer", d).parameters()) == published


def test_agrees_with_the_package_without_categories():
    torch.manual_seed(1)
    net = build("tab_transformer", 38).eval()
    x = 3 * torch.randn(50, 38)
    none = torch.zeros(50, 0, dtype=torch.long)
    torch.testing.assert_close(net(x), peer_of(net, (), 38)(none, x))


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(0, 9), st.integers(0, 99))
def test_agrees_with_the_package_on_one_hot_blocks(sizes, continuous, seed):
    torch.manual_seed(seed)
    ends = torch.tensor(sizes).cumsum(0) + continuous
    blocks = [(int(end) - size, int(end)) for size, end in zip(sizes, ends, strict=True)]
    net = build("tab_transformer", continuous + sum(sizes), categories=blocks).eval()
    codes = torch.stack([torch.randint(size, (20,)) for size in sizes], dim=1)
    numbers = torch.randn(20, continuous)
    onehot = [torch.nn.functional.one_hot(code, size) for code, size in zip(codes.T, sizes, strict=True)]
    x = torch.cat([numbers, *onehot], dim=1).float()
    theirs = peer_of(net, tuple(sizes), continuous)(codes.clone(), numbers)
    torch.testing.assert_close(net(x), theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("blocks", [((0, 3), (2, 5)), ((6, 9),)])
def test_blocks_that_overlap_or_leave_the_row_are_refused(blocks):
    with pytest.raises(ValueError, match="overlap or leave the 8 columns"):
        build("tab_transformer", 8, categories=blocks)


def test_too_narrow_a_row_is_refused():
    with pytest.raises(ValueError, match="7 columns are too few"):
        build("tab_transformer", 7)
