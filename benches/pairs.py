#!/usr/bin/env python3
"""Two commits measured in turn, A B A B …: how much slower or faster is B, and how much does A differ from itself?

    benches/pairs.py 953d248 . --pairs 7                # `.` is this tree as it lies here
    benches/pairs.py 953d248 . --only demo,votes --filter 'elector/3'

votes, replicate and catch_up are the benches of that name; broadcast and demo are the command's. Each commit is built
first, with its own release profile. For each figure: the medians, the median of B/A over the pairs, and from the
least to the most of A/A, each A against the one before. A B/A within A/A says nothing. By hand, on an idle machine.
"""
import argparse, json, os, re, subprocess, sys, tempfile
from pathlib import Path
from statistics import median

TREE = Path(__file__).resolve().parent.parent
UNITS = {"ps": 1e-3, "ns": 1, "µs": 1e3, "us": 1e3, "ms": 1e6, "s": 1e9}
BROADCASTS = {
    "100 B, 600 under way": ["--clients", "30", "--pipeline", "20"],
    "1 KiB, all servers": ["--clients", "30", "--pipeline", "20", "--payload", "1024", "--at", "all"],
    "100 B, one": ["--clients", "1"],
}
DEMOS = {"killed": [], "handed over": ["--hand-over"], "processes": ["--processes"]}


def run(command, cwd, **more):
    print("$", *command, file=sys.stderr)
    return subprocess.run([str(w) for w in command], cwd=cwd, check=True, text=True, stdout=subprocess.PIPE, **more).stdout


def built(commit, target):
    """The programs of a commit: the command, and the benches by name."""
    def build(tree):
        to = ["--target-dir", target / "pairs" / (commit if commit != "." else "this")]
        run(["cargo", "build", "-q", "--release", "-p", "quorate", *to], tree)
        benches = ["votes", "replicate", "catch_up"]
        command = ["cargo", "bench", "-p", "quorate-benches", "--no-run", "--message-format", "json", *to]
        messages = run([*command, *(w for b in benches for w in ("--bench", b))], tree).splitlines()
        programs = {"quorate": to[1] / "release/quorate"}
        for message in map(json.loads, messages):
            if message.get("executable") and message["target"]["name"] in benches:
                programs[message["target"]["name"]] = message["executable"]
        return programs

    if commit == ".":
        return build(TREE)
    # A commit does not change: what was built of it once is taken again.
    kept = target / "pairs" / commit / "programs.json"
    if kept.exists() and all(map(os.path.exists, (programs := json.loads(kept.read_text())).values())):
        return programs
    with tempfile.TemporaryDirectory(prefix="quorate-tree-") as tree:
        run(["git", "worktree", "add", "-q", "--detach", tree + "/t", commit], TREE)
        try:
            programs = {name: str(place) for name, place in build(tree + "/t").items()}
            kept.write_text(json.dumps(programs))
            return programs
        finally:
            run(["git", "worktree", "remove", "--force", tree + "/t"], TREE)


def criterion(program, name, words, place):
    """Nanoseconds by the bench's name."""
    how = ["--warm-up-time", "0.3", "--measurement-time", "1", "--sample-size", "20"] if words.quick else []
    how += [words.filter] if words.filter else []
    text = run([program, "--bench", "--noplot", *how], place, env={**os.environ, "CRITERION_HOME": place})
    timed = re.finditer(r"^(\S.*?)?\s+time:\s+\[\S+ \S+ (\S+) (\S+) ", text.replace("\n  ", "  "), re.M)
    return {f"{name} {m[1]} ns": float(m[2]) * UNITS[m[3]] for m in timed if "raft-rs" not in (m[1] or "")}


def catch_up(program, place):
    text = run([program, "--bench"], place)
    figures = {}
    for line in text.splitlines():
        if rate := re.match(r"(.{20}) +(\d+) (\S+)", line):
            figures[f"catch_up {rate[1].strip()} {rate[3]}"] = float(rate[2])
        if times := re.match(r"(.{28}) p50 (\S+) ms, p99 (\S+) ms", line):
            figures[f"catch_up {times[1].strip()} p50 ms"] = float(times[2])
    return figures


def command(program, what, place):
    figures = {}
    if what == "broadcast":
        for name, words in BROADCASTS.items():
            told = json.loads(run([program, "bench", "broadcast", "--json", "--seconds", "5", *words], place))
            for figure in ("writes_per_s", "p50_us", "p99_us", "cpu_us_per_write"):
                figures[f"broadcast {name} {figure}"] = told[figure]
    else:
        for name, words in DEMOS.items():
            lines = run([program, "demo", "--servers", "5", "--kill-leader", "10", "--json", *words], place).splitlines()
            told = json.loads(lines[-1])["summary"]
            for figure in ("failover_ms", "rejoin_ms"):
                if told.get(figure):
                    figures[f"demo {name} {figure}"] = told[figure]["median"]
    return figures


def measure(programs, words, place):
    figures = {}
    for what in words.only.split(","):
        if what in ("votes", "replicate"):
            figures |= criterion(programs[what], what, words, place)
        elif what == "catch_up":
            figures |= catch_up(programs[what], place)
        else:
            figures |= command(programs["quorate"], what, place)
    return figures


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("a")
    words.add_argument("b")
    words.add_argument("--pairs", type=int, default=5)
    words.add_argument("--only", default="votes,replicate,broadcast,catch_up,demo")
    words.add_argument("--filter", help="for votes and replicate: a part of their names")
    words.add_argument("--quick", action="store_true", help="votes and replicate: a second for each figure, more pairs instead")
    words = words.parse_args()
    target = Path(os.environ.get("CARGO_TARGET_DIR", TREE / "target"))
    programs = [built(commit, target) for commit in (words.a, words.b)]
    runs = []
    # The disk that this tree is on, not whatever is behind /tmp.
    with tempfile.TemporaryDirectory(dir=target) as place:
        for _ in range(words.pairs):
            runs.append([measure(side, words, place) for side in programs])
    print(f"\n{'':58}{'A':>12}{'B':>12}{'B/A':>8}   A/A")
    for figure in runs[0][0]:
        pairs = [(a[figure], b[figure]) for a, b in runs if a.get(figure) and b.get(figure)]
        if not pairs:
            continue
        a, b = (median(side) for side in zip(*pairs))
        own = [after[0] / before[0] for before, after in zip(pairs, pairs[1:])]
        spread = f"{min(own):.2f} to {max(own):.2f}" if own else ""
        print(f"{figure:58}{a:12.4g}{b:12.4g}{median(b / a for a, b in pairs):8.3f}   {spread}")


if __name__ == "__main__":
    main()
