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
            missing = "not set" if section == "variables" else "not found"
            print_fields({k: _shown(v, missing) for k, v in values.items()}, "  ")
        else:
            print("\n".join(f"  {value}" for value in values) or "  none")


def _shown(value: object, missing: str) -> str:
    if value is None:
        return missing
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
