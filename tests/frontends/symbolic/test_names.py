from te_select.frontends.symbolic.expressions import add, symbol
from te_select.frontends.symbolic.names import Names, identifier
from te_select.frontends.symbolic.ordering import minimum
from te_select.frontends.symbolic.tensors import Sizes
from te_select.operator.workload import Workload


def named(names, *dims):
    found = names.of_node([dims])
    return found.shape(dims), found.texts


def test_identifier_of_the_file_is_kept():
    names = Names(Sizes())
    names.give([(symbol("batch"), "batch", "batch")])
    assert named(names, symbol("batch"), 4) == (("batch", 4), {"batch": "batch"})


def test_expression_is_made_a_name_and_its_text_is_kept():
    names = Names(Sizes())
    total = add(symbol("past"), symbol("sequence"))
    names.give([(total, "sequence + past", "sequence + past")])
    assert named(names, total) == (("sequence_past",), {"sequence_past": "sequence + past"})


def test_number_is_made_a_name():
    names = Names(Sizes())
    names.give([(symbol("2"), "2", "2")])
    assert named(names, symbol("2")) == (("dim_2",), {"dim_2": "2"})


def test_names_that_clash_after_cleaning_are_told_apart():
    names = Names(Sizes())
    texts = ("a.b", "a b", "a-b?", "a_b")
    names.give([(symbol(text), text, text) for text in texts])
    shape, kept = named(names, *map(symbol, texts))
    assert len(set(shape)) == 4
    assert shape[3] == "a_b"  # an identifier keeps its name
    assert set(kept.values()) == set(texts)


def test_unknown_sizes_of_alike_nodes_make_one_workload():
    sizes = Sizes()
    names = Names(sizes)
    first, second = sizes.fresh("dim 0 of x"), sizes.fresh("dim 0 of y")
    assert named(names, first)[0] == named(names, second)[0] == ("d0",)
    assert named(names, second)[1] == {"d0": "(dim 0 of y)"}


def test_unknown_size_does_not_take_a_name_of_the_file():
    sizes = Sizes()
    names = Names(sizes)
    names.give([(symbol("d0"), "d0", "d0")])
    assert named(names, sizes.fresh("dim 0 of x"), symbol("d0"))[0] == ("d1", "d0")


def test_open_dim_of_an_input_is_named_after_it():
    sizes = Sizes()
    names = Names(sizes)
    dim = sizes.fresh("dim 0 of input 'my.x'")
    names.give([(dim, "dim 0 of input 'my.x'", "my.x_0")])
    assert named(names, dim)[0] == ("my_x_0",)
    assert named(names, minimum(4, dim))[1] == {"min_4_my_x_0": "min(4, my_x_0)"}


def test_any_text_makes_a_dim_that_a_workload_takes():
    for text in ("", "é", "1", "a" * 500, "(" * 99, "a b", "0x", "__", "\n", "\U0001d518"):
        name = identifier(text)
        assert Workload((name,), (name,), (name,)).out_shape == (name,)
    assert identifier("a" * 500) != identifier("a" * 501)
