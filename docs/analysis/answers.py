"""What the scripts share: reading the command line and printing answers."""

import json
import sys

import joular
import pyarrow

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
    try:
        data = joular.load(dataset)
    except joular.DataSetError as error:
        sys.exit(str(error))
    for name in wanted or questions:
        columns, rows = questions[name](data)
        # Engines round to the microjoule, in which the data set counts, but not all to the nearest number.
        rows = [[round(value, 6) if isinstance(value, float) else value for value in row] for row in rows]
        if "--json" in sys.argv:
            print(json.dumps({"question": name, "columns": list(columns), "rows": rows}, default=str))
            continue
        values = {column: [row[place] for row in rows] for place, column in enumerate(columns)}
        # It is printed with headings, and with control characters of names as escapes.
        print(f"\n{joular.Table(pyarrow.table(values), f'{name}: {questions[name].__doc__} ({data.origin})')}")
