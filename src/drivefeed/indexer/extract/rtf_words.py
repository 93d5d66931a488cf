"""The control words of the Rich Text Format 1.9.1 that matter to a reader of its text."""

from __future__ import annotations

from typing import Final

SYMBOLS: Final = {
    **dict.fromkeys(("par", "line", "sect", "page", "column", "row", "nestrow"), "\n"),
    **dict.fromkeys(("cell", "nestcell"), " | "),
    **dict.fromkeys(("emspace", "enspace", "qmspace"), " "),
    "tab": "\t",
    "emdash": "\N{EM DASH}",
    "endash": "\N{EN DASH}",
    "bullet": "\N{BULLET}",
    "lquote": "\N{LEFT SINGLE QUOTATION MARK}",
    "rquote": "\N{RIGHT SINGLE QUOTATION MARK}",
    "ldblquote": "\N{LEFT DOUBLE QUOTATION MARK}",
    "rdblquote": "\N{RIGHT DOUBLE QUOTATION MARK}",
}
CONTROL_SYMBOLS: Final = {
    b"\\": "\\",
    b"{": "{",
    b"}": "}",
    b"~": " ",
    b"_": "-",
    b"\n": "\n",
    b"\r": "\n",
}
# Groups that hold no text, or a copy of text that is elsewhere.
SKIPPED: Final = frozenset(
    [
        "colortbl",
        "stylesheet",
        "pict",
        "objdata",
        "objclass",
        "nonshppict",
        "fldinst",
        "datafield",
        "listtable",
        "listname",
        "listoverridetable",
        "revtbl",
        "filetbl",
        "themedata",
        "datastore",
        "xmlnstbl",
        "latentstyles",
        "generator",
        "sp",
        "shprslt",
        "bkmkstart",
        "bkmkend",
        "xe",
        "tc",
        "rxe",
        "private",
        "template",
        "keywords",
        "author",
        "operator",
        "company",
        "manager",
        "category",
        "comment",
        "doccomm",
        "creatim",
        "revtim",
        "printim",
        "buptim",
        "upr",
        "mmathPr",
        "formfield",
        "atnid",
        "atnauthor",
        "atndate",
        "atnref",
        "atrfstart",
        "atrfend",
        "panose",
        "falt",
        "fontemb",
        "pgptbl",
        "rsidtbl",
        "blipuid",
        "passwordhash",
        "userprops",
        "subject",
        "hlinkbase",
        "ftnsep",
        "ftnsepc",
        "ftncn",
        "aftnsep",
        "aftnsepc",
        "aftncn",
    ]
)
SHOWN_ALTHOUGH_STARRED: Final = frozenset(("ud", "shptxt", "shpinst", "footnote", "annotation"))
SEPARATE: Final = frozenset(
    [
        "header",
        "headerl",
        "headerr",
        "headerf",
        "footer",
        "footerl",
        "footerr",
        "footerf",
        "footnote",
        "annotation",
        "shptxt",
    ]
)
CHARSETS: Final = {
    77: "mac_roman", 128: "cp932", 129: "cp949", 130: "johab", 134: "gbk", 136: "cp950",
    161: "cp1253", 162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257",
    204: "cp1251", 222: "cp874", 238: "cp1250", 254: "cp437", 255: "cp850",
}  # fmt: skip
CODE_PAGES: Final = {"65001": "utf-8", "10000": "mac_roman", "936": "gbk", "1361": "johab"}
