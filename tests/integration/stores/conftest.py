# Hypothesis's plugin imports it while pytest sums up, if nobody did before. Python 3.11 sometimes
# fails to compile it there ("AST constructor recursion depth mismatch") when the collector runs.
import hypothesis  # noqa: F401 - for the reason above
