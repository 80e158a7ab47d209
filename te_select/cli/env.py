"""``te-select env``."""

from __future__ import annotations

from te_select.cli.console import JsonFlag, print_fields, print_json


def env_command(as_json: JsonFlag = False) -> None:
    """Show versions, CPU features, caches, GPUs and toolchains.

    Example: te-select env --json
    """
    from te_select.cli.environment import environment  # noqa: PLC0415 - reads the machine

    found = environment()
    if as_json:
        print_json(found)
        return
    for section, values in found.items():
        print(section)
        if isinstance(values, dict):
            print_fields({k: _shown(v) for k, v in values.items()}, "  ")
        else:
            print("\n".join(f"  {value}" for value in values) or "  none")


def _shown(value: object) -> str:
    if value is None:
        return "not found"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
