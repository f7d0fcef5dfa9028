import json

import pytest

from ploc_lab.models.recipe import RECIPES, find


def test_the_benchmarks_optimisers():
    assert (find("mlp").lr, find("mlp").weight_decay, find("mlp").batch) == (0.01, 0.01, 1024)
    assert (find("tab_transformer").lr, find("tab_transformer").batch) == (0.01, 256)
    assert (find("ft_transformer").lr, find("ft_transformer").weight_decay) == (1e-4, 1e-5)
    assert {find(name).epochs for name in ("mlp", "tab_transformer", "ft_transformer")} == {20}


def test_the_papers_text_is_a_variant_to_the_letter():
    for name in ("ft_transformer:paper_text", "tab_transformer:batch_1024", "mlp"):
        recipe = find(name)
        assert (recipe.batch, recipe.lr, recipe.weight_decay, recipe.epochs) == (1024, 0.01, 0.01, 20)


def test_recipes_are_json():
    for recipe in RECIPES.values():
        assert json.loads(json.dumps(recipe.asdict())) == recipe.asdict()


def test_an_unknown_one_is_refused_by_name():
    with pytest.raises(ValueError, match="no backbone 'mlp:deep'; there are mlp, "):
        find("mlp:deep")
