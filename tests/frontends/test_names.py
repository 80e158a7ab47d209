from te_select.frontends.names import identifier, named
from te_select.operator.workload import Workload


def test_identifier_of_the_file_is_kept():
    assert named({"batch": "batch", 3: "n"}) == {"batch": "batch", 3: "n"}


def test_arithmetic_and_numbers_are_made_names():
    assert named({"p": "past + sequence", "q": "2"}) == {"p": "past_sequence", "q": "dim_2"}


def test_names_that_clash_after_cleaning_are_told_apart():
    texts = ("a.b", "a b", "a-b?", "a_b")
    names = named({text: text for text in texts})
    assert len(set(names.values())) == 4
    assert names["a_b"] == "a_b"  # an identifier keeps its name


def test_any_text_makes_a_dim_that_a_workload_takes():
    for text in ("", "é", "1", "a" * 500, "(" * 99, "a b", "0x", "__", "\n", "\U0001d518"):
        name = identifier(text)
        assert Workload((name,), (name,), (name,)).out_shape == (name,)
    assert identifier("a" * 500) != identifier("a" * 501)
