"""What a cubin says about its kernels: registers, and bytes of local memory."""

import struct
from dataclasses import dataclass

_REGISTERS, _FRAME = 0x2F, 0x11  # attributes of .nv.info, as nvdisasm names them
_SIZED = 4  # the format of an attribute whose value has a length
_STRUCT_64 = "<IIQQQQIIQQ"


@dataclass
class Usage:
    """Registers per thread, and bytes of its frame in local memory (spills, arrays)."""

    registers: int = 0
    frame: int = 0


def usage(cubin: bytes) -> dict[str, Usage]:
    """Read the usage of every function of a cubin."""
    offset, count = struct.unpack_from("<Q", cubin, 40)[0], struct.unpack_from("<H", cubin, 60)[0]
    names_at = struct.unpack_from("<H", cubin, 62)[0]
    headers = [struct.unpack_from(_STRUCT_64, cubin, offset + 64 * k) for k in range(count)]

    def content(k: int) -> bytes:
        return cubin[headers[k][4] : headers[k][4] + headers[k][5]]

    def text(table: bytes, at: int) -> str:
        return table[at : table.index(b"\0", at)].decode()

    sections = {text(content(names_at), header[0]): k for k, header in enumerate(headers)}
    symbols = content(sections[".symtab"])
    strings = content(headers[sections[".symtab"]][6])
    found: dict[str, Usage] = {}
    info, at = content(sections[".nv.info"]), 0
    while at < len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        if form == _SIZED and attribute in (_REGISTERS, _FRAME):
            symbol, value = struct.unpack_from("<II", info, at + 4)
            name = text(strings, struct.unpack_from("<I", symbols, 24 * symbol)[0])
            entry = found.setdefault(name, Usage())
            if attribute == _REGISTERS:
                entry.registers = value
            else:
                entry.frame = value
        at += 4 + (size if form == _SIZED else 0)
    return found
