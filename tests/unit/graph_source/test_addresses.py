"""Every form of an address that people paste, and what is asked of Graph for it."""

from __future__ import annotations

import contextlib
import string
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drivefeed.sources.graph.addresses import LONGEST, parse_address
from drivefeed.sources.graph.places import (
    CONSUMERS,
    LOOK_ALIKE,
    Address,
    DrivePath,
    NotAnAddress,
    OwnDrive,
    SharingLink,
    SitePath,
    UserDrive,
)

LAB = "https://contoso.sharepoint.com/sites/Lab"
MY = "https://contoso-my.sharepoint.com"
GUID = "4be51f3a-0f22-4d0e-8c55-2a5d3f6a7b10"
ENCODED_GUID = "%7B4BE51F3A-0F22-4D0E-8C55-2A5D3F6A7B10%7D"


def at(path: str, host: str = "contoso.sharepoint.com", cloud: str | None = "global") -> SitePath:
    return SitePath(host, tuple(name for name in path.split("/") if name), cloud)


def my(path: str) -> SitePath:
    return at(path, "contoso-my.sharepoint.com")


def shared(url: str) -> SharingLink:
    host = url.split("/")[2]
    return SharingLink(url, host, "global")


PLACES: list[tuple[str, Address]] = [
    # A site, a library, a folder, as the address bar shows them.
    (LAB, at("sites/Lab")),
    (f"{LAB}/", at("sites/Lab")),
    (f"{LAB}/Shared%20Documents", at("sites/Lab/Shared Documents")),
    (f"{LAB}/Shared Documents/2026/Reports", at("sites/Lab/Shared Documents/2026/Reports")),
    (f"{LAB}/Shared%20Documents/2026/", at("sites/Lab/Shared Documents/2026")),
    (f"{LAB}/Method%20Sheets/A", at("sites/Lab/Method Sheets/A")),
    ("https://contoso.sharepoint.com/teams/Ops/Docs/In", at("teams/Ops/Docs/In")),
    ("https://contoso.sharepoint.com", at("")),
    ("https://contoso.sharepoint.com/Shared%20Documents/x", at("Shared Documents/x")),
    ("https://contoso.sharepoint.com/sites/Lab/Sub/Docs/x", at("sites/Lab/Sub/Docs/x")),
    (f"{MY}/personal/ana_contoso_com/Documents/A", my("personal/ana_contoso_com/Documents/A")),
    (f"{MY}/personal/ana_contoso_com", my("personal/ana_contoso_com")),
    # Steps, which browsers follow before they ask.
    (f"{LAB}/Docs/../Shared%20Documents/./2026", at("sites/Lab/Shared Documents/2026")),
    (f"{LAB}/%2e%2e/Other/Docs", at("sites/Other/Docs")),
    ("me:/Reports/../../2026/..", OwnDrive()),
    # The pages of SharePoint itself.
    (f"{LAB}/SitePages/Home.aspx", at("sites/Lab")),
    (f"{LAB}/_layouts/15/viewlsts.aspx?view=14", at("sites/Lab")),
    (f"{LAB}/default.aspx", at("sites/Lab")),
    (f"{LAB}/Shared%20Documents/Forms/AllItems.aspx", at("sites/Lab/Shared Documents")),
    (f"{LAB}/Docs/Forms/Thumbnails.aspx?viewid={GUID}", at("sites/Lab/Docs")),
    (
        f"{LAB}/Docs/Forms/AllItems.aspx?id=%2Fsites%2FLab%2FDocs%2FA%20b&viewid={GUID}",
        at("sites/Lab/Docs/A b"),
    ),
    (
        f"{LAB}/Docs/Forms/AllItems.aspx?viewid={GUID}&id=/sites/Lab/Docs/A b&p=true&ga=1",
        at("sites/Lab/Docs/A b"),
    ),
    (
        f"{LAB}/Docs/Forms/AllItems.aspx?RootFolder=%2fsites%2fLab%2fDocs%2fA&FolderCTID=0x01&View="
        + ENCODED_GUID,
        at("sites/Lab/Docs/A"),
    ),
    (f"{LAB}/Docs/Forms/AllItems.aspx?RootFolder=Docs%2FA", at("sites/Lab/Docs/Docs/A")),
    (
        f"{LAB}/Docs/Forms/AllItems.aspx?id=https%3A%2F%2Fcontoso%2Esharepoint%2Ecom%2Fsites%2FLab%2FX",
        at("sites/Lab/X"),
    ),
    (f"{LAB}/Docs/Forms/AllItems.aspx?id=", at("sites/Lab/Docs")),
    (f"{LAB}/_layouts/15/start.aspx#/Shared%20Documents/A", at("sites/Lab/Shared Documents/A")),
    (
        f"{MY}/my?id=%2Fpersonal%2Fana%5Fcontoso%5Fcom%2FDocuments%2FA&ga=1",
        my("personal/ana_contoso_com/Documents/A"),
    ),
    (
        (
            f"{MY}/my?listurl=https%3A%2F%2Fcontoso%2Esharepoint%2Ecom%2Fsites%2FLab%2FDocs"
            "&id=%2Fsites%2FLab%2FDocs%2FA"
        ),
        at("sites/Lab/Docs/A"),
    ),
    (
        f"{MY}/my?listurl=https%3A%2F%2Fcontoso%2Esharepoint%2Ecom%2Fsites%2FLab%2FDocs",
        at("sites/Lab/Docs"),
    ),
    (
        (
            f"{MY}/personal/ana_contoso_com/_layouts/15/onedrive.aspx?id=%2Fpersonal%2Fana_contoso_com"
            "%2FDocuments%2FA"
        ),
        my("personal/ana_contoso_com/Documents/A"),
    ),
    (MY, OwnDrive((), "global")),
    (f"{MY}/my", OwnDrive((), "global")),
    (f"{MY}/_layouts/15/onedrive.aspx", OwnDrive((), "global")),
    # The button "Copy link".
    (
        "https://contoso.sharepoint.com/:f:/r/sites/Lab/Docs/A%20b?d=w1f&csf=1&web=1&e=Zx1",
        at("sites/Lab/Docs/A b"),
    ),
    (
        f"{MY}/:f:/r/personal/ana_contoso_com/Documents/A?csf=1&web=1",
        my("personal/ana_contoso_com/Documents/A"),
    ),
    (
        "https://contoso.sharepoint.com/:w:/r/sites/Lab/Docs/a.docx?d=w1f&csf=1",
        at("sites/Lab/Docs/a.docx"),
    ),
    # Shared: only Microsoft knows what it names.
    *(
        (url, shared(url))
        for url in (
            "https://contoso.sharepoint.com/:f:/s/Lab/EkPq-x_y?e=Zx1",
            "https://contoso.sharepoint.com/:f:/t/Ops/EkPq",
            f"{MY}/:f:/g/personal/ana_contoso_com/EkPq?e=5%3aZx",
            "https://contoso.sharepoint.com/:x:/s/Lab/EkPq",
            (
                "https://contoso.sharepoint.com/:w:/r/sites/Lab/_layouts/15/Doc.aspx?sourcedoc="
                f"{ENCODED_GUID}&file=a.docx&action=default"
            ),
            f"{LAB}/_layouts/15/guestaccess.aspx?share=EkPq&folderid=1",
        )
    ),
    # What copying adds.
    (f"  {LAB}/Docs/A \n", at("sites/Lab/Docs/A")),
    (f"<{LAB}/Docs/A>", at("sites/Lab/Docs/A")),
    (f'"{LAB}/Docs/A"', at("sites/Lab/Docs/A")),
    (f"({LAB}/Docs/A)", at("sites/Lab/Docs/A")),
    (f"\u201c{LAB}/Docs/A\u201d", at("sites/Lab/Docs/A")),
    (f"\ufeff{LAB}/Do\u200bcs/A", at("sites/Lab/Docs/A")),
    (f"{LAB}/Do\ncs/A", at("sites/Lab/Docs/A")),
    (f"{LAB}/Docs/A?web=1", at("sites/Lab/Docs/A")),
    (f"{LAB}/Docs/A?d=w12&csf=1", at("sites/Lab/Docs/A")),
    ("contoso.sharepoint.com/sites/Lab/Docs", at("sites/Lab/Docs")),
    ("http://CONTOSO.SharePoint.com:443/sites/Lab/Docs", at("sites/Lab/Docs")),
    ("https://contoso.sharepoint.com./sites/Lab", at("sites/Lab")),
    ("https://contoso.sharepoint.com//sites//Lab//Docs", at("sites/Lab/Docs")),
    # Odd names.
    (f"{LAB}/Docs/C%23%20notes", at("sites/Lab/Docs/C# notes")),
    (f"{LAB}/Docs/C# notes/2026", at("sites/Lab/Docs/C# notes/2026")),
    (f"{LAB}/Docs/A#InplviewHash123=FilterField1%3DX", at("sites/Lab/Docs/A")),
    (f"{LAB}/Docs/a+b", at("sites/Lab/Docs/a+b")),
    (f"{LAB}/Docs/Forms/AllItems.aspx?id=%2Fsites%2FLab%2FDocs%2Fa%2Bb", at("sites/Lab/Docs/a+b")),
    (f"{LAB}/Docs/Forms/AllItems.aspx?id=%2Fsites%2FLab%2FDocs%2Fa+b", at("sites/Lab/Docs/a b")),
    (f"{LAB}/Docs/100%25%20done", at("sites/Lab/Docs/100% done")),
    (f"{LAB}/Docs/100%2520", at("sites/Lab/Docs/100%20")),
    (f"{LAB}/Docs/100% done", at("sites/Lab/Docs/100% done")),
    (f"{LAB}/Docs/R%26D;x=1,'q'", at("sites/Lab/Docs/R&D;x=1,'q'")),
    (f"{LAB}/Docs/%E6%BC%A2%E5%AD%97%20é", at("sites/Lab/Docs/漢字 é")),
    (f"{LAB}/Docs/Forms", at("sites/Lab/Docs/Forms")),
    # National clouds.
    (
        "https://agency.sharepoint.us/sites/Lab/Docs",
        at("sites/Lab/Docs", "agency.sharepoint.us", "us_l4"),
    ),
    (
        "https://unit.sharepoint-mil.us/sites/Lab/Docs",
        at("sites/Lab/Docs", "unit.sharepoint-mil.us", "us_l5"),
    ),
    (
        "https://firma.sharepoint.cn/sites/Lab/Docs",
        at("sites/Lab/Docs", "firma.sharepoint.cn", "china"),
    ),
    (
        "https://agency.sharepoint.us/:f:/s/Lab/EkPq",
        SharingLink("https://agency.sharepoint.us/:f:/s/Lab/EkPq", "agency.sharepoint.us", "us_l4"),
    ),
    # A look-alike of Microsoft Graph.
    (
        "https://graphsim.sharepoint.invalid/sites/Lab/Docs",
        at("sites/Lab/Docs", "graphsim.sharepoint.invalid", LOOK_ALIKE),
    ),
    # The personal OneDrive.
    ("https://onedrive.live.com", OwnDrive((), CONSUMERS)),
    ("https://onedrive.live.com/?id=root", OwnDrive((), CONSUMERS)),
    (
        "https://onedrive.live.com/?cid=9f8e7d6c5b4a3210",
        DrivePath("9f8e7d6c5b4a3210", cloud=CONSUMERS),
    ),
    (
        "https://onedrive.live.com/?id=root&cid=9F8E7D6C5B4A3210",
        DrivePath("9F8E7D6C5B4A3210", cloud=CONSUMERS),
    ),
    (
        "https://onedrive.live.com/?id=9F8E7D6C5B4A3210%21104&cid=9F8E7D6C5B4A3210",
        DrivePath("9F8E7D6C5B4A3210", "9F8E7D6C5B4A3210!104", cloud=CONSUMERS),
    ),
    (
        "https://onedrive.live.com/?cid=9F8E7D6C5B4A3210&id=1234567890ABCDEF%21s" + "0a" * 16,
        DrivePath("1234567890ABCDEF", "1234567890ABCDEF!s" + "0a" * 16, cloud=CONSUMERS),
    ),
    (
        "https://onedrive.live.com/#id=9F8E7D6C5B4A3210%21104&cid=9F8E7D6C5B4A3210",
        DrivePath("9F8E7D6C5B4A3210", "9F8E7D6C5B4A3210!104", cloud=CONSUMERS),
    ),
    (
        "https://onedrive.live.com/redir?resid=9F8E7D6C5B4A3210!104",
        DrivePath("9F8E7D6C5B4A3210", "9F8E7D6C5B4A3210!104", cloud=CONSUMERS),
    ),
    (
        "https://onedrive.live.com/?id=%2Fpersonal%2F9f8e7d6c5b4a3210%2FDocuments%2FA%20b&ga=1",
        DrivePath("9f8e7d6c5b4a3210", path=("A b",), cloud=CONSUMERS),
    ),
    (
        "https://d.docs.live.net/9f8e7d6c5b4a3210/A%20b/c",
        DrivePath("9f8e7d6c5b4a3210", path=("A b", "c"), cloud=CONSUMERS),
    ),
    *(
        (url, SharingLink(url, url.split("/")[2], CONSUMERS))
        for url in (
            "https://1drv.ms/f/s!AkPq-x_y",
            "https://1drv.ms/f/c/9f8e7d6c5b4a3210/EkPq?e=Zx",
            "https://onedrive.live.com/?authkey=%21AB&id=9F8E7D6C5B4A3210%21104&cid=9F8E7D6C5B4A3210",
            "https://onedrive.live.com/redir?resid=9F8E7D6C5B4A3210!104&authkey=!AB",
            "https://onedrive.live.com/:f:/g/personal/9f8e7d6c5b4a3210/EkPq?e=Zx",
        )
    ),
    # Teams, where its link names a place.
    (
        (
            f"https://teams.microsoft.com/l/file/{GUID}?tenantId={GUID}&fileType=docx&objectUrl="
            "https%3A%2F%2Fcontoso.sharepoint.com%2Fteams%2FOps%2FShared%20Documents%2Fa.docx"
            "&baseUrl=https%3A%2F%2Fcontoso.sharepoint.com%2Fteams%2FOps&serviceName=teams"
        ),
        at("teams/Ops/Shared Documents/a.docx"),
    ),
    (
        (
            "https://teams.microsoft.com/_#/school/files/General?threadId=19:x@thread.tacv2&ctx=channel"
            "&rootfolder=%252Fsites%252FLab%252FShared%2520Documents%252FGeneral"
        ),
        at("sites/Lab/Shared Documents/General", "", None),
    ),
    # Microsoft Graph itself, for those who know the ids.
    (
        "https://graph.microsoft.com/v1.0/drives/b!Ab-c_1/root:/A%20b/c:",
        DrivePath("b!Ab-c_1", None, ("A b", "c")),
    ),
    (
        "https://graph.microsoft.com/v1.0/drives/b!Ab-c_1/items/01ABC",
        DrivePath("b!Ab-c_1", "01ABC"),
    ),
    ("https://graph.microsoft.us/v1.0/drives/b!Ab-c_1", DrivePath("b!Ab-c_1")),
    # Short forms.
    ("me", OwnDrive()),
    ("me:/A/b c", OwnDrive(("A", "b c"))),
    ("/A/b", OwnDrive(("A", "b"))),
    ("/", OwnDrive()),
    ("ana@contoso.com", UserDrive("ana@contoso.com")),
    ("ana@contoso.com:/A/b", UserDrive("ana@contoso.com", ("A", "b"))),
    ("/sites/Lab/Docs/A", at("sites/Lab/Docs/A", "", None)),
    ("/sites/Lab/Shared%20Documents/A", at("sites/Lab/Shared Documents/A", "", None)),
    ("b!Ab-c_1234567890:/A", DrivePath("b!Ab-c_1234567890", path=("A",))),
    ("9f8e7d6c5b4a3210:/A", DrivePath("9f8e7d6c5b4a3210", path=("A",))),
]


@pytest.mark.parametrize(("text", "place"), PLACES, ids=[text[:90] for text, _ in PLACES])
def test_what_an_address_names(text: str, place: Address) -> None:
    assert parse_address(text) == place


WRONG = [
    ("", "is empty"),
    ("   \n", "is empty"),
    ("\u200b", "is empty"),
    ("Reports", "is not an address"),
    ("ftp://contoso.sharepoint.com/sites/Lab", "begins with 'ftp:'"),
    ("C:\\Users\\ana\\OneDrive - Contoso\\A", "a folder of a computer"),
    ("\\\\contoso.sharepoint.com@SSL\\DavWWWRoot\\sites\\Lab", "a folder of a computer"),
    ("file:///srv/ana/OneDrive/A", "a folder of a computer"),
    ("~/OneDrive/A", "a folder of a computer"),
    ("https://", "not a complete address"),
    ("https://[", "not a complete address"),
    ("https:///sites/Lab", "not a complete address"),
    ("https://drive.google.com/drive/folders/1AbC", "is Google Drive"),
    ("https://www.dropbox.com/home/A", "is Dropbox"),
    ("https://intranet.contoso.com/sites/Lab/Docs", "not a host of OneDrive or SharePoint Online"),
    ("https://sharepoint.com/sites/Lab", "not a host of OneDrive or SharePoint Online"),
    ("https://contoso.sharepoint.com.evil.example/sites/Lab", "not a host of OneDrive"),
    ("https://contoso-admin.sharepoint.com/_layouts/15/x.aspx", "the SharePoint admin centre"),
    ("https://contoso.sharepoint.com/:f:/s/Lab", "is cut off"),
    ("https://contoso.sharepoint.com/:f:", "is cut off"),
    ("https://contoso.sharepoint.com/:l:/s/Lab/EkPq", "is a list and holds no files"),
    ("https://1drv.ms/", "is cut off"),
    ("https://onedrive.live.com/?id=sharedwithme&cid=9f8e7d6c5b4a3210", "not one folder"),
    ("https://onedrive.live.com/?cid=nobody", "does not say whose OneDrive"),
    ("https://d.docs.live.net/", "does not say whose OneDrive"),
    (
        "https://teams.microsoft.com/l/channel/19%3ax%40thread.tacv2/General?groupId=x",
        "does not say where the files are",
    ),
    ("https://graph.microsoft.com/v1.0/me/messages", "names no folder of a drive"),
    (f"{MY}/my?listurl=https%3A%2F%2Fevil.example%2Fsites%2FLab", "not a host of SharePoint"),
    ("https://contoso.sharepoint.com/sites/" + "x" * LONGEST, "more than any folder's"),
]


@pytest.mark.parametrize(("text", "words"), WRONG, ids=[text[:60] for text, _ in WRONG])
def test_what_is_no_address_gets_a_sentence(text: str, words: str) -> None:
    with pytest.raises(NotAnAddress) as caught:
        parse_address(text)
    said = str(caught.value)
    assert words in said
    assert said.endswith(".")
    assert len(said) < 600


_pieces = st.sampled_from(
    [
        "https://", "contoso.sharepoint.com", "contoso-my.sharepoint.com", "onedrive.live.com",
        "1drv.ms", "teams.microsoft.com", "graph.microsoft.com/v1.0/drives/", "/sites/", "/:f:/",
        "r/", "s/", "/Forms/AllItems.aspx", "?id=", "&RootFolder=", "&listurl=", "%2F", "%", "%ff",
        "#", "+", "//", "[", "]", ":", "@", "me:/", "!", "\ud800", "\x00", "cid=", "authkey=",
        "objectUrl=", "_layouts/15/Doc.aspx", "/personal/", "..", "\\", " ",
    ]
)  # fmt: skip
_texts = st.one_of(
    st.text(max_size=60),
    st.text(alphabet=string.printable, max_size=60),
    st.lists(st.one_of(_pieces, st.text(max_size=6)), max_size=12).map("".join),
)


@settings(max_examples=300, deadline=None)
@given(_texts)
def test_nothing_but_an_address_or_our_sentence_comes_of_any_text(text: str) -> None:
    with contextlib.suppress(NotAnAddress):
        found = parse_address(text)
        assert isinstance(found, SitePath | SharingLink | DrivePath | OwnDrive | UserDrive)
        assert repr(found).isprintable()


_names = st.text(
    alphabet=st.characters(
        exclude_characters='/\\*<>?:|"', exclude_categories=("Cc", "Cf", "Cs", "Z")
    ),
    min_size=1,
    max_size=12,
).filter(lambda name: name.casefold() not in {"forms", "_layouts", "_api", "sitepages", "_vti_bin"})


@settings(max_examples=100, deadline=None)
@given(st.lists(_names, min_size=1, max_size=4), st.booleans())
def test_an_encoded_path_comes_back_name_by_name(names: list[str], in_option: bool) -> None:  # noqa: FBT001 (drawn)
    if names[-1].casefold().endswith(".aspx"):
        return
    path = "/sites/Lab/Docs/" + "/".join(names)
    url = (
        f"{LAB}/Docs/Forms/AllItems.aspx?id={quote(path, safe='')}"
        if in_option
        else f"https://contoso.sharepoint.com{quote(path)}?web=1"
    )
    assert parse_address(url) == SitePath(
        "contoso.sharepoint.com", ("sites", "Lab", "Docs", *names), "global"
    )
