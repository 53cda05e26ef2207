"""Small files in the formats of checkpoints."""

import io
import json
import struct
import zipfile


def zipped(content: bytes) -> bytes:
    """Return a zip archive, the format in which numpy and torch write arrays."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(
            zipfile.ZipInfo("w.npy"), content
        )  # with a fixed date: the same content is the same bytes
    return made.getvalue()


def tensors(content: bytes) -> bytes:
    """Return a file in the safetensors format."""
    head = json.dumps(
        {"w": {"dtype": "U8", "shape": [len(content)], "data_offsets": [0, len(content)]}}
    ).encode()
    return struct.pack("<Q", len(head)) + head + content
