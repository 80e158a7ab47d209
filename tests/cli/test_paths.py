"""`te_select.cli.paths`: files that the command line takes and writes."""

from te_select.cli import paths


def test_ending_of_a_picture_may_be_in_capitals(tmp_path, monkeypatch):
    monkeypatch.setattr("te_select.cli.paths.importlib.util.find_spec", lambda name: name)
    paths.check_plot(tmp_path / "a.PNG")
