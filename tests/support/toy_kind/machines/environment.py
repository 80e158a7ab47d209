"""What ``te-select env`` says of toys."""


def environment() -> dict[str, dict[str, str]]:
    return {"toys": {"loops": "there"}}
