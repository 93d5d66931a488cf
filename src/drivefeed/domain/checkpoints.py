"""The places where a process may die, each with a name: around every commit and every effect.

A checkpoint does nothing in production. Tests kill the process at each of them and look at what is
left. The list is closed: a commit or an effect that is not in it fails the tests of the house.

A commit is passed as ``NAME.commit.before`` and ``NAME.commit.after``, an effect on the outside as
``NAME.before`` and ``NAME.after``.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COMMITS: dict[str, str] = {
    "account.accept": "An account signs in by its new certificate alone.",
    "account.add": "An account is added, with its credential.",
    "account.change": "An account gets other facts or another credential.",
    "account.clear": "Some of what an account that goes had listed for plans is forgotten.",
    "account.declare": "An account of the settings is made known.",
    "account.ensure": "The account that a connection names is there.",
    "account.offer": "An account gets a new certificate beside its sign-in.",
    "account.remove": "An account is forgotten.",
    "account.state": "What came of the last use of a sign-in is noted.",
    "account.unreached": "That a sign-in service did not answer is noted.",
    "admit.attempt": "A scan failed and is tried again.",
    "admit.done": "A scan of the tree has its outcome.",
    "advance.accepted": "The backend's job is known.",
    "advance.cancelled": "The backend will not do what is no longer wanted.",
    "advance.published": "The index shows or hides what the catalog says.",
    "advance.refused": "A file cannot be imported.",
    "advance.removed": "Nothing of an import is left outside.",
    "advance.same_bytes": "The bytes are those of another version, which stands for this one.",
    "advance.settled": "An import is done: ledger, counter and what is live, all in one.",
    "advance.stored": "The bytes are in the store.",
    "advance.submitting": "The backend may know the import from now on.",
    "advance.unwanted": "Nothing of an import is believed any more.",
    "again": "A stage is due again later.",
    "attempt": "A failed attempt is noted.",
    "attention": "A person is asked.",
    "budgets": "How budgets at Microsoft stand is noted for all processes.",
    "budgets.old": "What was noted of budgets too long ago is forgotten.",
    "bury": "The only process of a catalog starts, so the rows of all others are due.",
    "claim": "A worker takes a row.",
    "clear": "A person's retry clears what kept an import waiting.",
    "collection.begin": "Another collection of the index is begun.",
    "collection.forget": "A collection that was removed is forgotten.",
    "collection.give_up": "A collection that was being built is given up.",
    "collection.remember": "The catalog learns which collection is in use.",
    "connect": "A folder is connected.",
    "connection.pause": "A connection is paused or goes on.",
    "connection.rename": "A connection gets another name.",
    "correct": "An entry of the ledger is corrected by another.",
    "credential.reseal": "A few secrets are sealed with the newest key.",
    "credential.rotated": "A rotation of keys is written down.",
    "credential.save": "A secret is kept in place of an older one.",
    "declare": "Connections are made what a file declares.",
    "disconnect": "A connection is stopped for good, and has its receipt.",
    "disconnect.sign_out": "The credential of a connection's account goes, or is needed again.",
    "discover.attempt": "A look at a drive failed and is tried again.",
    "discover.done": "A look at a drive has its outcome.",
    "drive.calm": "Nothing keeps a drive waiting any more.",
    "drive.ensure": "A drive is known.",
    "drive.note": "What keeps a drive waiting is noted.",
    "drive.route": "A drive is read through another account from now on.",
    "drive.settle_soon": "A drive's decisions are due after a scan.",
    "drives.retry": "Drives that wait for a person are asked again.",
    "embedding.choose": "An organization's embedding is chosen; search is as before.",
    "embedding.choose_none": "An organization goes back to the installation's embedding.",
    "enumeration": "A full listing begins.",
    "erase.end": "A disconnected connection is gone, and its receipt whole.",
    "erase.purge": "Words about some erased documents are cleared.",
    "erase.some": "Some documents of a disconnected connection are to be erased.",
    "erase.tree": "Some of a tree that nobody needs any more goes.",
    "forget": "A file is forgotten, and its content to be erased.",
    "gate": "What holds downloads back is noted for all processes.",
    "hand_back": "A worker that ends gives its row back.",
    "heartbeat": "A process says that it is alive.",
    "index_job.create": "The embedded backend takes a job.",
    "index_job.finish": "A job of the embedded backend ends.",
    "index_job.hold": "What keeps a job of the embedded backend back is noted for its import.",
    "index_job.progress": "A job of the embedded backend got further.",
    "index_job.read": "A file that was under way at a death is known to be read without harm.",
    "index_job.shown": "The embedded backend notes what is shown of a job.",
    "key.create": "A key or a link for the status page is made.",
    "key.revoke": "A key is revoked.",
    "key.used": "The use of a key is noted.",
    "lease.release": "A lease is given back.",
    "lease.take": "A lease is taken or renewed.",
    "leave": "A process ends in order.",
    "mend.converge": "A repair writes what follows from the facts of a document.",
    "mend.counters": "A repair makes counters what the ledger adds up to.",
    "mend.show": "A repair has the index told again what is shown of a document.",
    "notice.claim": "A message is taken to be sent.",
    "notice.delivered": "A message was taken by its channel.",
    "notice.drop": "Messages for channels that are gone are dropped.",
    "notice.failed": "A message was not taken and waits.",
    "notice.forget": "Notices that are long over are forgotten.",
    "notice.reconcile": "The open notices become those of the troubles there are.",
    "org.add": "An organization is added.",
    "org.ensure": "The organization that the settings name is there.",
    "org.rename": "An organization gets another name.",
    "org.sender": "An organization of another drivefeed is made known to the relay.",
    "page": "A page of changes is applied whole, with its cursor; the last one ends the round.",
    "park": "An import waits until its connection goes on.",
    "period": "A new period of a page limit begins.",
    "permissions.told": "What was told of files' permissions is known, to be decided by.",
    "placed": "The index was told a document's name and folders.",
    "plan.apply": "A folder is connected as its plan says.",
    "poll_now": "A backend said that a job ended, so its poll is due.",
    "quota.limit": "An organization gets another page limit, or none.",
    "reap": "The rows of dead processes are due again.",
    "reconcile.note": "When a drive is to be listed in full again is noted.",
    "reindex.built": "A round of an import is complete in the new collection.",
    "reindex.enter": "A process has the index of a server open.",
    "reindex.forget": "A round of an import has to be built once more.",
    "reindex.leave": "A process has the index of a server open no more.",
    "reindex.stay": "A process has the index of a server open for longer.",
    "reindex.swap": "The new collection is the one in use.",
    "reindex.turn": "A process has the index of a server alone, to rebuild it.",
    "reindex.turn_end": "Others may open the index of a server again.",
    "relay.bring_back": "Deliveries that got lost in the queue are due anew.",
    "relay.emptied": "The queue was emptied, so no delivery counts as sent.",
    "relay.sent": "Deliveries are marked as sent.",
    "relay.taken": "What a dead worker took from a queue and never claimed is due anew.",
    "release": "A worker lets go of a row for which there was nothing to do.",
    "remember": "A forgotten file is decided about anew.",
    "removals.apply": "Some of the removals that a person approved are applied.",
    "removals.approve": "A person approves removals.",
    "removals.discard": "A person keeps what was to be removed.",
    "renew": "A worker that takes long keeps its row.",
    "reread": "Items that were asked for by id are in the tree, and to be decided about.",
    "reserve": "Pages are held for an import, or it waits in line.",
    "restore.again": "An import whose effects a restore lost begins a new round.",
    "restore.anew": "After a restore everything counts as unsent.",
    "restore.done": "A restore was recovered from.",
    "restore.index": "Points that a restore lost are due to be made again.",
    "restore.mark": "The catalog learns that it was restored.",
    "restore.show": "The index is due to be told again what is shown.",
    "resume": "What waited for an account goes on.",
    "retention.details": "Words about versions that were withdrawn long ago are cleared.",
    "retention.done": "What was pruned is noted.",
    "retention.events": "Old events of ended rounds are deleted.",
    "retention.heartbeats": "Heartbeats of processes long gone are deleted.",
    "retention.index_jobs": "Old jobs of the embedded backend are deleted.",
    "retention.sessions": "Old sessions of the status page are deleted.",
    "round.failing": "Since when the same link of a drive fails is noted.",
    "round.give_up": "A round that leads nowhere begins again.",
    "round.learn": "What Graph said of items that were asked for by id enters the tree.",
    "round.welcome": "A connected folder that came back under another id is taken for the same.",
    "scan": "Some of the tree is decided about anew.",
    "session.begin": "Somebody signs in to the status page.",
    "session.end": "Somebody signs out of the status page.",
    "session.forget": "Sessions and links that ended long ago are forgotten.",
    "settling": "Some of the decisions of a finished round are made.",
    "subscription.ask": "Microsoft may know of a subscription from now on.",
    "subscription.forget": "A subscription that ended is forgotten.",
    "subscription.granted": "Microsoft tells us of a drive's changes, until a time that is known.",
    "subscription.refused": "Microsoft did not grant a subscription, which is asked for later.",
    "subscription.renewal": "Microsoft asked for a subscription to be renewed.",
    "told": "Microsoft told of changes, so drives are due.",
    "unattended": "A retry on the board clears a question to a person.",
    "wake": "Drives are due to be looked at.",
}
"""Every commit by its name, and what is true after it."""

EFFECTS: dict[str, str] = {
    "index.fetch": "The embedded backend copies an object out of the store.",
    "index.forget": "The embedded backend removes the points of a job that was cancelled.",
    "index.swap": "The embedded backend shows the points of a round.",
    "index.upsert": "The embedded backend writes points.",
    "notice.send": "A message goes to its channel.",
    "page.fetch": "A page of changes is asked for.",
    "poll": "The backend is asked how its job stands.",
    "poll.cancel": "The backend is asked to stop what is no longer wanted.",
    "publish.live": "The index is told to show or hide a round.",
    "publish.place": "The index is told a document's name and folders.",
    "queue.clear": "Every queue is emptied after a restore.",
    "recovery.object": "An object that no import has is removed after a restore.",
    "recovery.points": "Points that no import has are removed after a restore.",
    "reindex.agree": "What differs between two collections is made alike before the swap.",
    "reindex.clear": "What an organization left in a collection that others use is removed.",
    "reindex.drop": "A collection that is no longer in use is removed.",
    "reindex.place": "A round in the new collection gets its flag and its place.",
    "reindex.swap": "The new collection takes the place of the former one, in catalog and process.",
    "reindex.upsert": "Points are written to the new collection.",
    "relay.add": "Deliveries are added to a queue.",
    "relay.sentinel": "The queue gets the sign by which it is seen not to have been emptied.",
    "submit": "A stored version is handed to the backend, which replies with its job.",
    "subscription.create": "Microsoft is asked to tell of a drive's changes.",
    "subscription.end": "Microsoft is asked to tell of a drive no more.",
    "subscription.renew": "Microsoft is asked to tell of a drive for longer.",
    "tokens.ask": "Microsoft is asked for new tokens and answers.",
    "tokens.save": "New tokens are kept before they are used.",
    "transfer.discard": "A copy is removed whose file was edited meanwhile.",
    "transfer.download": "The content of a file is asked for.",
    "transfer.put": "The content of a file is written to the store.",
    "uploads.sweep": "Uploads that nobody finished are removed from the store.",
    "withdraw.cancel": "The backend is asked to stop before its points are removed.",
    "withdraw.object": "An object is removed from the store.",
    "withdraw.points": "The points of a round are removed from the index.",
}
"""Every effect on the outside by its name, and what it does."""


def checkpoints() -> dict[str, str]:
    """Return every checkpoint by its name, in the order of the tables, with its sentence."""
    found: dict[str, str] = {}
    for name, sentence in COMMITS.items():
        found[f"{name}.commit.before"] = f"Before this is written: {sentence}"
        found[f"{name}.commit.after"] = f"After this was written: {sentence}"
    for name, sentence in EFFECTS.items():
        found[f"{name}.before"] = f"Before this: {sentence}"
        found[f"{name}.after"] = f"After this: {sentence}"
    return found


@contextmanager
def passing(checkpoint: Callable[[str], None], effect: str) -> Iterator[None]:
    """Pass the checkpoints of an effect; the second one only if nothing was raised.

    Args:
        effect: one of :data:`EFFECTS`.
    """
    checkpoint(f"{effect}.before")
    yield
    checkpoint(f"{effect}.after")
