"""boto3 as its guide shows it, `upload_file` and `download_file` with what is set by default, several files
at once.

Run by the Python of the peers' environment, which has nothing of this project.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import boto3

FILES_AT_ONCE = 8


def main() -> None:
    way, bucket, prefix, where = sys.argv[1:]
    folder, client = Path(where), boto3.client("s3", endpoint_url=os.environ["BENCH_ENDPOINT"])
    with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
        if way == "up":
            names = sorted(path.name for path in folder.iterdir())
            done = [
                pool.submit(client.upload_file, str(folder / name), bucket, prefix + name) for name in names
            ]
        else:
            folder.mkdir(parents=True)
            pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
            keys = [found["Key"] for page in pages for found in page["Contents"]]
            done = [
                pool.submit(client.download_file, bucket, key, str(folder / key.rpartition("/")[2]))
                for key in keys
            ]
        for one in done:
            one.result()


if __name__ == "__main__":
    main()
