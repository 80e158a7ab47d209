"""A copy of te_select in which files are edited, as a walk of CONTRIBUTING.md says."""

from shutil import copytree, ignore_patterns

from tests.support import ROOT, programs


def run_with(edits, folder, code):
    """Copy the package, put a text before another in some files, and run a program with it."""
    leave = ignore_patterns("__pycache__", "schedules", "tuning_logs", "prebuilt")
    copytree(ROOT / "te_select", folder / "te_select", ignore=leave)
    copytree(ROOT / "schedules", folder / "schedules", dirs_exist_ok=True)
    (folder / "te_select" / "schedules").symlink_to(folder / "schedules")
    for name, (new, before) in edits.items():
        path = folder / name
        text = path.read_text()
        assert text.count(before) == 1, (name, before)
        path.write_text(text.replace(before, new + before))
    return programs.python(code, cwd=folder, PYTHONPATH=folder)
