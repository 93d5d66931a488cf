"""The embedded backend's jobs, remembered: an implementation of the IndexJobs port."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, func, select, update

from drivefeed.catalog import reminders
from drivefeed.catalog.dialect import insert_once
from drivefeed.catalog.documents import PAYLOAD_SCHEMA, reason_of
from drivefeed.catalog.tables import index_jobs, orgs
from drivefeed.domain.identity import index_job_id
from drivefeed.ports import IndexJob, IndexJobState, Submission

if TYPE_CHECKING:
    from sqlalchemy import RowMapping, Select

    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.reasons import Reason


_BY_ID = select(index_jobs).where(index_jobs.c.id == bindparam("named"))
_HIGHEST = select(func.max(index_jobs.c.seq)).where(index_jobs.c.document_id == bindparam("of"))
_BY_KEY = select(index_jobs).where(index_jobs.c.key == bindparam("named"))


class CatalogIndexJobs:
    """Index jobs as rows of the catalog, each with a reminder of its own."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    async def create(self, submission: Submission) -> IndexJob:
        """Remember a job and make its ``index`` stage due; the same key gives the same job."""
        job_id = index_job_id(submission.key)
        now = self._catalog.clock.now()
        async with self._catalog.write("index_job.create", beside=True) as connection:
            inserted = await insert_once(
                connection,
                index_jobs,
                {
                    "id": job_id,
                    "key": submission.key,
                    "import_id": submission.import_id,
                    "document_id": submission.document_id,
                    "seq": submission.seq,
                    "submission": json.dumps(asdict(submission)),
                    "state": IndexJobState.QUEUED,
                    "created_at": now,
                },
            )
            if inserted:
                await reminders.put(
                    connection,
                    subject_id=job_id,
                    org_id=submission.org_id,
                    stage="index",
                    due_at=now,
                    payload={
                        "schema": PAYLOAD_SCHEMA,
                        "org_id": submission.org_id,
                        "document_id": submission.document_id,
                        "import_id": submission.import_id,
                        "round": submission.round,
                        "job_id": job_id,
                    },
                )
        job = await self.get(job_id)
        assert job is not None
        return job

    async def get(self, job_id: str) -> IndexJob | None:
        """Return a job, or None."""
        return await self._one(_BY_ID, job_id)

    async def find(self, key: str) -> IndexJob | None:
        """Return the job of an idempotency key, or None."""
        return await self._one(_BY_KEY, key)

    async def _one(self, statement: Select[Any], name: str) -> IndexJob | None:
        async with self._catalog.read() as connection:
            rows = await connection.execute(statement, {"named": name})
            row = rows.mappings().one_or_none()
        return _job_of(row) if row is not None else None

    async def set_progress(self, job_id: str, percent: int) -> None:
        """Record progress; ignored unless the job is queued, and had come less far."""
        async with self._catalog.write("index_job.progress", beside=True) as connection:
            await connection.execute(
                update(index_jobs)
                .where(
                    index_jobs.c.id == job_id,
                    index_jobs.c.state == IndexJobState.QUEUED,
                    index_jobs.c.progress < percent,
                )
                .values(progress=percent)
            )

    async def note_read(self, job_id: str, starts: int) -> None:
        """Record that the file was read without harm at the start of that number."""
        async with self._catalog.write("index_job.read", beside=True) as connection:
            await connection.execute(
                update(index_jobs).where(index_jobs.c.id == job_id).values(read_at_start=starts)
            )

    async def is_overtaken(self, job: IndexJob) -> bool:
        """Tell whether a higher seq of the job's document was submitted."""
        sent = job.submission
        async with self._catalog.read() as connection:
            rows = await connection.execute(_HIGHEST, {"of": sent.document_id})
            highest = rows.scalar_one()
        return highest is not None and highest > sent.seq

    async def set_shown(self, key: str, *, shown: bool) -> None:
        """Record whether what the job of a key brought in is shown; fine if there is none."""
        async with self._catalog.write("index_job.shown") as connection:
            await connection.execute(
                update(index_jobs).where(index_jobs.c.key == key).values(shown=shown)
            )

    async def finish(
        self,
        job_id: str,
        state: IndexJobState,
        *,
        pages: int | None = None,
        chunks: int | None = None,
        reason: Reason | None = None,
        detail: str = "",
        shown: bool = True,
    ) -> bool:
        """End a queued job and make the poll of its import due now; False if it had ended."""
        now = self._catalog.clock.now()
        async with self._catalog.write("index_job.finish", beside=True) as connection:
            values: dict[str, Any] = {
                "state": state,
                "pages": pages,
                "chunks": chunks,
                "reason": reason,
                "detail": detail,
                "shown": shown and state is IndexJobState.DONE,
            }
            if state is IndexJobState.DONE:
                values["progress"] = 100
            result = await connection.execute(
                update(index_jobs)
                .where(index_jobs.c.id == job_id, index_jobs.c.state == IndexJobState.QUEUED)
                .values(values)
                .returning(index_jobs.c.import_id)
            )
            import_id = result.scalar_one_or_none()
            await reminders.rest(connection, job_id)
            if import_id is None:
                return False
            if await reminders.stage_of(connection, import_id) == "poll":
                await reminders.postpone(connection, import_id, due_at=now)
        return True


async def ensure_sender(catalog: Catalog, org_id: str) -> None:
    """Make an organization known that another drivefeed submits documents of.

    The relay takes organizations in turn; one that has no row would never have its turn.
    """
    async with catalog.write("org.sender") as connection:
        await insert_once(
            connection,
            orgs,
            {"id": org_id, "name": org_id, "created_at": catalog.clock.now()},
        )


def _job_of(row: RowMapping) -> IndexJob:
    fields = json.loads(row["submission"])
    fields["folders"] = tuple(fields["folders"])
    return IndexJob(
        job_id=row["id"],
        submission=Submission(**fields),
        state=IndexJobState(row["state"]),
        progress=row["progress"],
        pages=row["pages"],
        chunks=row["chunks"],
        reason=reason_of(row["reason"]),
        detail=row["detail"],
        shown=row["shown"],
        read_at_start=row["read_at_start"],
    )
