"""Names of dims that files write as any text (`te_select.frontends.graphs`)."""

from te_select.frontends.graphs import identifier, named
from tests.support import flat


def test_text_of_a_file_is_made_a_name_unless_it_is_one():
    texts = {"batch": "batch", 3: "n", "p": "past + sequence", "q": "2"}
    assert named(texts) == texts | {"p": "past_sequence", "q": "dim_2"}


def test_names_that_clash_after_cleaning_are_told_apart():
    names = named({text: text for text in ("a.b", "a b", "a-b?", "a_b")})
    assert len(set(names.values())) == 4
    assert names["a_b"] == "a_b"  # an identifier keeps its name


def test_any_text_makes_a_dim_that_a_workload_takes():
    for text in ("", "é", "1", "a" * 500, "(" * 99, "a b", "0x", "__", "\n", "\U0001d518"):
        name = identifier(text)
        assert flat(name).out_shape == (name,)
    assert identifier("a" * 500) != identifier("a" * 501)
