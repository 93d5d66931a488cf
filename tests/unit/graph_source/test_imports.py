import subprocess
import sys

ROOT = "src"


def test_importing_the_source_imports_no_sdk() -> None:
    code = (
        "import sys, drivefeed.sources.graph\n"
        "print(sorted({m.split('.')[0] for m in sys.modules}"
        " & {'msgraph', 'msgraph_core', 'kiota_http', 'kiota_abstractions', 'azure', 'msal'}))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=True, env={"PYTHONPATH": ROOT},
    )  # fmt: skip
    assert ran.stdout.strip() == "[]"
