"""What the catalog holds of a drive in the end, compared with the drive itself and with rclone."""

from __future__ import annotations

import itertools
from typing import Any

from sqlalchemy import select

from drivefeed.catalog.tables import documents, imports
from drivefeed.domain.lifecycle import State
from drivefeed.domain.reasons import Reason
from engine.edited_drive import EditedDrive, seen
from engine.rclone import copy_of
from engine.truth import covered, sha256


class ComparedDrive(EditedDrive):
    """An edited drive whose catalog has to be equal to it."""

    async def _compare(self) -> None:
        drive, stand = self.drive, self.stand
        told = {root: covered(drive, root, policy) for root, policy in self.policies.items()}
        for root, reasons in told.items():
            said = await stand.coverage(root)
            assert said == reasons, self._difference(said, reasons)
            assert await stand.attention(root) is None
        items = {key for said in told.values() for key, reason in said.items() if reason is None}
        files = {key: drive.tree.items[key] for key in items}
        assert await self._held() == {key: sha256(drive, one) for key, one in files.items()}
        assert await stand.live() == items
        paths = {"/".join(drive.tree.names(one)) for one in files.values()}
        assert set(await stand.tree()) == paths
        await self._count_downloads()

    def _difference(self, said: dict[str, Any], true: dict[str, Any]) -> str:
        """Name what the catalog says otherwise."""
        return "\n".join(
            f"{key} {self.drive.tree.items.get(key)}: {said.get(key, '-')} is {true.get(key, '-')}"
            for key in said.keys() | true.keys()
            if said.get(key, "-") != true.get(key, "-")
        )

    async def _held(self) -> dict[str, str | None]:
        """The bytes that are held of each wanted document."""
        asked = (
            select(documents.c.item_id, imports.c.sha256, imports.c.state)
            .join(imports, imports.c.id == documents.c.wanted_import_id)
            .where(documents.c.drive_id == self.stand.drive_id)
        )
        async with self.stand.catalog.read() as connection:
            rows = list(await connection.execute(asked))
        assert {row.state for row in rows} <= {State.SETTLED}
        return {row.item_id: row.sha256 for row in rows}

    async def _count_downloads(self) -> None:
        """A content is sent once for each time it is new; a fault or an edit may cost one more."""
        needless = sum(
            before == after
            for opened in self.opened.values()
            for before, after in itertools.pairwise(opened)
        )
        disturbed = sum(
            one.hits for one in self.armed if one.match.op in {"content", "download"}
        ) + self.stand.passed.count("transfer.discard.after")
        unhashed = [one for one in self.armed if {"file.hashes", "file"} & set(one.fields)]
        if any(one.hits for one in unhashed):
            rows = await self.stand.rows(imports, imports.c.reason == Reason.SAME_BYTES)
            disturbed += len(rows)
        seen["downloads"] += sum(map(len, self.opened.values()))
        assert needless <= disturbed, self.opened

    async def _compare_with_rclone(self) -> None:
        """Known exclusions: what a policy skips, which rclone knows nothing of."""
        told = {root: covered(self.drive, root, policy) for root, policy in self.policies.items()}
        wanted = {key for said in told.values() for key, reason in said.items() if reason is None}
        skipped = {
            "/".join(self.drive.tree.names(self.drive.tree.items[key])): key
            for key in (one.id for one in self._live("file"))
            if key not in wanted
        }
        copied = await copy_of(self.ground.sim, self.drive)
        held = await self._held()
        ours = {
            "/".join(self.drive.tree.names(self.drive.tree.items[key])): value
            for key, value in held.items()
        }
        assert {key: value for key, value in copied.items() if key not in skipped} == ours
