"""Says what a bucket costs a fleet, in requests, bytes and dollars a day: the tables of cost.md.

Usage: cost.py [--every MINUTES] [--objects COUNT] [--keep DAYS] [HOSTS ...]

A host ships a run every so many minutes, as so many objects: one for each table of a run today, or one if a run is one object.
Without any of these, the tables are those of cost.md. `--facts` prints what they are computed from, as JSON.
"""

import argparse
import json
from decimal import Decimal

# US dollars, for S3 Standard in us-east-1. AWS's own page (https://aws.amazon.com/s3/pricing/) has the prices of the day.
READ_ON = "2026-11-30"
# https://c3x.dev/blog/s3-request-fees-explained. Deletions cost nothing (S3 FAQs, https://aws.amazon.com/s3/faqs/).
PUT_OR_LIST = Decimal("0.005") / 1000
GET = Decimal("0.0004") / 1000
# https://gist.github.com/EverettBerry/a37438006529a55f42da6fdbc44a505c: a month's price of a GB by the GB that are there.
# A GB of storage has 2^30 bytes (worked example in the S3 FAQs).
STORAGE = [(50 * 1024, Decimal("0.023")), (500 * 1024, Decimal("0.022")), (None, Decimal("0.021"))]
GB = 2**30
DAYS_OF_MONTH = 30
# https://gist.github.com/dasgoll/b88d5be05dcc0deb052ad40446c2fb40, without the first 20 000 of a month.
KMS = Decimal("0.03") / 10_000

# Measured: tests/it/cost.rs counts what the program asks of a server of the same protocol.
OBJECTS_OF_A_RUN = 9
GETS_OF_A_RUN = 8
# docs/measured/fleet.md: ten JVMs that are idle, at most, and ten under load.
HOST_HOUR = {"idle": 1_028_801, "loaded": 9 * 2**20}

EVERY = 15
KEEP = 30
HOSTS = [100, 1_000, 10_000]


def money(dollars):
    """To the cent; what is less than a dollar, to a hundredth of a cent."""
    return f"${dollars:,.2f}" if dollars >= 1 else f"${dollars:.4f}"


def number(value):
    return f"{value:,}".replace(",", " ")


def size(amount):
    return f"{amount / GB:,.1f} GB".replace(",", " ")


def storage_of_month(amount):
    """Dollars for bytes that are there all month."""
    dollars, below = Decimal(0), 0
    for end, price in STORAGE:
        within = min(amount / GB, end) if end else amount / GB
        dollars += max(Decimal(within) - below, Decimal(0)) * price
        below = end or below
    return dollars


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def of_layouts(hosts, layouts, said):
    """What is said of the number of objects that are written a day, by layout: objects of a run, and minutes of one."""
    header = ["hosts"] + [f"{objects} a run, each {every} min" for objects, every in layouts]
    rows = []
    for count in hosts:
        puts = [count * 24 * 60 // every * objects for objects, every in layouts]
        rows.append([number(count)] + [said(put) for put in puts])
    return table(header, rows)


def keeping(hosts, days):
    header = ["hosts", *(f"{load}, {what}" for load in HOST_HOUR for what in ("a day", f"{days} days kept, a day"))]
    rows = []
    for count in hosts:
        row = [number(count)]
        for an_hour in HOST_HOUR.values():
            a_day = count * an_hour * 24
            row += [size(a_day), f"{size(a_day * days)}, {money(storage_of_month(a_day * days) / DAYS_OF_MONTH)}"]
        rows.append(row)
    return table(header, rows)


def reading(hosts, every):
    header = ["hosts", "runs of a day", "GET", "dollars"]
    rows = []
    for count in hosts:
        runs = count * 24 * 60 // every
        gets = runs * GETS_OF_A_RUN
        rows.append([number(count), number(runs), number(gets), money(gets * GET)])
    return table(header, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("hosts", nargs="*", type=int, default=HOSTS, metavar="HOSTS")
    parser.add_argument("--every", type=int, default=EVERY, metavar="MINUTES")
    parser.add_argument("--objects", type=int, metavar="COUNT")
    parser.add_argument("--keep", type=int, default=KEEP, metavar="DAYS")
    parser.add_argument("--facts", action="store_true")
    asked = parser.parse_args()
    if min([asked.every, asked.keep, *asked.hosts]) < 1 or (asked.objects is not None and asked.objects < 1):
        parser.error("numbers are at least 1")
    if asked.facts:
        facts = {"objects_of_a_run": OBJECTS_OF_A_RUN, "gets_of_a_run": GETS_OF_A_RUN, "host_hour_bytes": HOST_HOUR}
        print(json.dumps(facts))
        return
    objects = [OBJECTS_OF_A_RUN, 1] if asked.objects is None else [asked.objects]
    layouts = [(count, every) for count in objects for every in sorted({asked.every, 60})]
    print("Shipping, a day:\n")
    print(of_layouts(asked.hosts, layouts, lambda put: f"{number(put)} PUT, {money(put * PUT_OR_LIST)}"))
    print("\nStorage:\n")
    print(keeping(asked.hosts, asked.keep))
    print("\nA report over the runs of a day, in today's layout:\n")
    print(reading(asked.hosts, asked.every))
    print("\nRequests to AWS KMS for shipping without a bucket key, a day:\n")
    print(of_layouts(asked.hosts, layouts, lambda put: money(put * KMS)))


main()
