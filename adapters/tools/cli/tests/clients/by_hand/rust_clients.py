#!/usr/bin/python3 -B
"""Three clients for Rust as judges: their own tests, at servers of quorate.

    rust_clients.py QUORATE [NAME…]   QUORATE is the command
    rust_clients.py --java [NAME…]    the same at Apache ZooKeeper 3.8.0, to compare

Needs cargo and a registry of crates. `zookeeper` and `zookeeper-async` start their servers with `java`: `ensemble.py` stands in
for it. The tests of `zookeeper-client` start them with docker: `testcontainers.rs` stands in for the crate that does it. Says
what passed, failed and was left out, and ends with 0 if nothing failed.
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

import ensemble

HERE = os.path.dirname(os.path.abspath(__file__))

# Each with its version and what of its tests is left out, and why.
CLIENTS = {
    "zookeeper": ("0.8.0", {}),
    "zookeeper-async": ("5.0.0", {}),
    "zookeeper-client": (
        "0.11.2",
        {
            "test_auth_failed": "a server that demands SASL",
            "test_readonly_plaintext": "the read-only mode",
        },
    ),
}


def cargo(*words, where, **more):
    return subprocess.run(["cargo", *words], cwd=where, check=False, text=True, **more)


def source(name, version, place):
    """The crate as its authors published it, copied to where it may be changed."""
    os.makedirs(os.path.join(place, "fetch", "src"))
    with open(os.path.join(place, "fetch", "Cargo.toml"), "w", encoding="utf-8") as file:
        file.write(f'[package]\nname = "fetch"\nversion = "0.0.0"\n[dependencies]\n{name} = "={version}"\n')
    open(os.path.join(place, "fetch", "src", "lib.rs"), "w", encoding="utf-8").close()
    cargo("fetch", "-q", where=os.path.join(place, "fetch")).check_returncode()
    home = os.environ.get("CARGO_HOME", os.path.expanduser("~/.cargo"))
    (found, *_) = glob.glob(os.path.join(home, "registry", "src", "*", f"{name}-{version}"))
    crate = os.path.join(place, name)
    shutil.copytree(found, crate)
    # What it was locked to is years old.
    if os.path.exists(os.path.join(crate, "Cargo.lock")):
        os.remove(os.path.join(crate, "Cargo.lock"))
    return crate


def without_docker(crate):
    """The dependency that starts containers is not published; one that starts servers takes its place."""
    place = os.path.join(crate, "containers")
    os.makedirs(os.path.join(place, "src"))
    shutil.copy(os.path.join(HERE, "testcontainers.rs"), os.path.join(place, "src", "lib.rs"))
    with open(os.path.join(place, "Cargo.toml"), "w", encoding="utf-8") as file:
        file.write('[package]\nname = "testcontainers"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\ntempfile = "3"\n')
    append(crate, '[dev-dependencies.testcontainers]\npath = "containers"\n')


def append(crate, table):
    with open(os.path.join(crate, "Cargo.toml"), "a", encoding="utf-8") as file:
        file.write("\n" + table)


def run(name, place, threads):
    """How many tests passed, which failed, all that was said, and the exit code."""
    version, left_out = CLIENTS[name]
    crate = source(name, version, place)
    if name == "zookeeper":
        # What was a warning when it was written has become an error.
        append(crate, '[lints.rust]\ndependency_on_unit_never_type_fallback = "warn"\n')
    if name == "zookeeper-client":
        without_docker(crate)
    stand_in = os.path.join(place, "bin", "java")
    os.makedirs(os.path.dirname(stand_in))
    with open(stand_in, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nexec {sys.executable} {os.path.join(HERE, "ensemble.py")} "$@"\n')
    os.chmod(stand_in, 0o755)
    surroundings = {
        "CARGO_PROFILE_DEV_LTO": "off",
        **os.environ,
        "PATH": os.path.dirname(stand_in) + os.pathsep + os.environ["PATH"],
        "JUDGED_SERVER": " ".join(ensemble.command()),
    }
    skipped = [word for test in left_out for word in ("--skip", test)]
    words = ["test", "--tests", "--no-fail-fast", "--", "--test-threads", str(threads), *skipped]
    ran = cargo(*words, where=crate, env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    # What a test logs stands in the line of its verdict, but the closing lines are whole.
    passed = sum(int(count) for count in re.findall(r"^test result: \w+\. (\d+) passed", ran.stdout, re.MULTILINE))
    lists = re.findall(r"^failures:\n((?:    \S+\n)+)", ran.stdout, re.MULTILINE)
    return passed, [name for names in lists for name in names.split()], ran.stdout, ran.returncode


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("given", nargs="*", metavar="QUORATE|NAME")
    parser.add_argument("--java", action="store_true")
    parser.add_argument("--threads", type=int, default=2, help="how many tests of a client run at once")
    parser.add_argument("--said", help="a directory for all that the tests say")
    options = parser.parse_args()
    names = options.given
    os.environ.pop("QUORATE", None)
    if not options.java:
        if not names:
            parser.error("either QUORATE or --java")
        os.environ["QUORATE"] = os.path.abspath(names.pop(0))
    if unknown := set(names) - set(CLIENTS):
        parser.error(f"no such client: {unknown}")

    good = True
    for name in names or CLIENTS:
        with tempfile.TemporaryDirectory(prefix="judge-") as place:
            passed, failed, said, code = run(name, place, options.threads)
        version, left_out = CLIENTS[name]
        print(f"{name} {version}: {passed} passed, {len(failed)} failed, {len(left_out)} left out", flush=True)
        for test in failed:
            print(f"  failed: {test}")
        for test, why in left_out.items():
            print(f"  left out: {test}: {why}")
        if code != 0 and not failed:
            print(said[-4000:])
        if options.said:
            with open(os.path.join(options.said, name + ".said"), "w", encoding="utf-8") as file:
                file.write(said)
        good = good and code == 0 and passed > 0
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
