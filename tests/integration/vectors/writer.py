"""Writes points to an index folder for ever and tells of each write that was acknowledged.

Run by the tests, which kill it: ``python writer.py FOLDER``.
"""

import asyncio
import itertools
import sys
import uuid
from pathlib import Path

from drivefeed.indexer.vectors.edge import EdgeIndex
from drivefeed.ports import Point


def batch(number: int) -> list[Point]:
    return [
        Point(
            point_id=str(uuid.uuid5(uuid.NAMESPACE_OID, f"{number}/{chunk}")),
            vector=(1.0, chunk, number, 0.0),
            text=f"batch{number} chunk{chunk} " * 30,
            org_id="o",
            document_id=f"d{number}",
            import_id=f"i{number}",
            round=1,
            seq=1,
            chunk=chunk,
            page=1,
            name="n",
            media_type="text/plain",
            folders=("f",),
            live=False,
        )
        for chunk in range(20)
    ]


async def main(folder: Path) -> None:
    index = EdgeIndex(folder, model_name="m", dimension=4)
    for number in itertools.count():
        await index.upsert(batch(number))
        await index.set_live(import_id=f"i{number}", round_=1, live=True)
        print(number, flush=True)  # noqa: T201 - the parent reads it


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
