"""Counts what test commands said, and prints one summary of a whole run.

    tally.py FOLDER add PART EXIT_CODE SECONDS LOG   count the tests in a log
    tally.py FOLDER cannot PART REASON               a part that could not run at all
    tally.py FOLDER summary                          prints, and exits 0, 1 (failures) or 3 (could not run)

Reads the output of `cargo test`, of `cargo nextest run`, and of the smoke scripts of the rigs. A failed
test whose output holds a line with "could not run: REASON" counts as that, not as failed: it says that its
service is missing, which is no verdict about muster.
"""
import json
import pathlib
import re
import sys

LIBTEST = re.compile(r"^test (.+?) \.\.\. (ok|FAILED|ignored)(?:, .*)?$")
NEXTEST = re.compile(r"^ *(FAIL|TIMEOUT|ABORT|LEAK-FAIL|SIG[A-Z]+|TRY \d+ [A-Z]+) +\[[^\]]*\] +(?:\([^)]*\) +)?(.+)$")
NEXTEST_PASSED = re.compile(r"^ *Summary \[[^\]]*\].* (\d+) passed")
NEXTEST_OTHER = re.compile(r"^ *(PASS|SLOW|LEAK|FLAKY|START) +\[")
SMOKE = re.compile(r"^(ok|FAILED) +(\w+)\b.*$")
RUNNING = re.compile(r"^ +Running (?:unittests )?(\S+) \(")
SECTION = re.compile(r"^---- (.+?) stdout ----$")


def read(log, code, part):
    """Passed count, failed names and could-not-run names of one log."""
    passed, failed, cannot, section, reasons, binary = 0, [], [], None, {}, ""
    for line in log.splitlines():
        if found := RUNNING.match(line):
            # names are unique within one test binary only
            binary, section = found[1] + " ", None
        elif found := SECTION.match(line):
            section = binary + found[1]
        elif section and "could not run: " in line:
            reasons[section] = line.partition("could not run: ")[2]
        if found := LIBTEST.match(line):
            name, verdict = binary + found[1], found[2]
            passed += verdict == "ok"
            if verdict == "FAILED":
                failed.append(name)
            if verdict == "ignored":
                cannot.append(f"{name}: ignored")
        elif found := NEXTEST.match(line):
            # nextest names a failure when it happens, with its output behind it, and again at its end
            section = found[2]
            if not found[1].startswith("TRY") and found[2] not in failed:
                failed.append(found[2])
        elif NEXTEST_OTHER.match(line):
            section = None
        elif found := NEXTEST_PASSED.match(line):
            section = None
            passed += int(found[1])
        elif part.startswith("rig-") and (found := SMOKE.match(line)):
            passed += found[1] == "ok"
            if found[1] == "FAILED":
                failed.append(found[2])
    cannot += [f"{name}: {reasons[name]}" for name in failed if name in reasons]
    failed = [name for name in failed if name not in reasons]
    # a build that breaks or a process that dies names no test
    if code != 0 and not failed and not cannot:
        failed.append(f"the command ended with {code}")
    if part.startswith("rig-") and not passed and not failed:
        failed.append("the smoke script said nothing")
    return passed, failed, cannot


def summary(folder):
    rows = [json.loads(line) for line in (folder / "tally").read_text().splitlines()]
    print("\n== summary")
    for row in rows:
        time = f"  {row['seconds']} s" if row["seconds"].isdigit() else ""
        print(f"{row['part']:<12} {row['passed']:>5} passed {len(row['failed']):>4} failed "
              f"{len(row['cannot']):>4} could not run{time}")
    failed = [f"{r['part']}: {name}" for r in rows for name in r["failed"]]
    cannot = [f"{r['part']}: {name}" for r in rows for name in r["cannot"]]
    print(f"{'total':<12} {sum(r['passed'] for r in rows):>5} passed {len(failed):>4} failed {len(cannot):>4} could not run")
    for title, names in (("failed", failed), ("could not run", cannot)):
        if names:
            print(f"{title}:", *names, sep="\n  ")
    return 1 if failed else 3 if cannot else 0


def main(folder, verb, *rest):
    folder = pathlib.Path(folder)
    if verb == "summary":
        return summary(folder)
    part = rest[0]
    if verb == "cannot":
        row = {"part": part, "seconds": "-", "passed": 0, "failed": [], "cannot": [rest[1]]}
    else:
        code, seconds, log = rest[1:]
        passed, failed, cannot = read(pathlib.Path(log).read_text(errors="replace"), int(code), part)
        row = {"part": part, "seconds": seconds, "passed": passed, "failed": failed, "cannot": cannot}
    with open(folder / "tally", "a") as out:
        out.write(json.dumps(row) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
