"""Small files in the formats of checkpoints."""

import io
import json
import struct
import zipfile


def zipped(content: bytes) -> bytes:
    """Return a zip archive, the format in which numpy and torch write arrays."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        # with a fixed date: the same content is the same bytes
        archive.writestr(zipfile.ZipInfo("w.npy"), content)
    return made.getvalue()


def tensors(content: bytes) -> bytes:
    """Return a file in the safetensors format."""
    head = json.dumps(
        {"w": {"dtype": "U8", "shape": [len(content)], "data_offsets": [0, len(content)]}}
    ).encode()
    return struct.pack("<Q", len(head)) + head + content
