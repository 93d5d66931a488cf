"""``extractSensitivityLabels``: the one place where Graph tells the labels of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphsim.errors import GraphError, invalid_request
from graphsim.items import Kind, Profile

if TYPE_CHECKING:
    from graphsim.pages import Question

OPERATION = "extractsensitivitylabels"
_TYPES = ("docx", "docm", "pptx", "pptm", "ppsx", "ppsm", "xlsx", "xlsm", "xlsb", "pdf")


async def extract_labels(question: Question) -> None:
    """Answer the labels of a file, as documented for work and school accounts.

    Raises:
        GraphError: 501 for a personal drive, 400 for what carries no label, 423 for a file that
            is encrypted so that SharePoint cannot look.
    """
    drive, item = question.drive, question.item
    if drive.profile is Profile.PERSONAL:
        raise GraphError(501, "notSupported", "Personal drives have no sensitivity labels.")
    if item.kind is not Kind.FILE or not item.name.lower().endswith(_TYPES):
        raise invalid_request("Labels cannot be extracted from this type of file.")
    if item.id in drive.protected:
        message = "The file is protected, so its labels cannot be extracted."
        raise GraphError(423, drive.protected[item.id], message)
    labels = [
        {"sensitivityLabelId": one, "assignmentMethod": "standard", "tenantId": drive.tenant_id}
        for one in drive.labels.get(item.id, ())
    ]
    context = question.context("extractSensitivityLabelsResult")
    await question.exchange.json(200, {"@odata.context": context, "labels": labels})
