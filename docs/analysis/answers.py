"""What the scripts share: reading the command line and printing answers."""

import json
import sys

# Kinds of code that are Java: of these a method's name is package, class and name.
JAVA = ["interpreted", "compiled", "compiled-c1", "compiled-c2", "inlined", "native-wrapper"]


def main(questions):
    """Answers the questions of the command line: DATASET [QUESTION…] [--json]."""
    words = [word for word in sys.argv[1:] if word != "--json"]
    if not words:
        sys.exit(f"usage: {sys.argv[0]} DATASET [{'|'.join(questions)}]… [--json]")
    dataset, *wanted = words
    unknown = [name for name in wanted if name not in questions]
    if unknown:
        sys.exit(f"no such question: {', '.join(unknown)}; there are {', '.join(questions)}")
    for name in wanted or questions:
        rows = [list(row) for row in questions[name](dataset)]
        if "--json" in sys.argv:
            print(json.dumps({"question": name, "rows": rows}, default=str))
            continue
        print(f"\n{name}: {questions[name].__doc__}")
        for row in rows:
            # Names come from processes: ascii() prints control characters as escapes.
            print("  " + "  ".join(text if text.isprintable() else ascii(text) for text in map(str, row)))
