#!/usr/bin/python3 -B
"""ZooKeeper 3.9.5 and Curator 5.9.0 in the place of Debian's: the tests of mixed ensembles, of directories that change
hands, and of Curator's recipes.

    zookeeper_3_9.py [--jars FOLDER]   FOLDER has the jars already

Without FOLDER it takes them out of PyPI's pyspark 4.3.0, 456 MB that are removed again; needs pip. Needs java, javac and
cargo. What goes as Debian's ZooKeeper 3.8.0 alone does is left out by name, and why.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[6]
PACKAGE = "pyspark==4.3.0"
# What a server or a client of ZooKeeper and Curator needs.
NEEDED = ("zookeeper-", "curator-", "netty-", "slf4j-api", "jul-", "jcl-", "log4j-", "metrics-core", "snappy-java")
NEEDED += ("guava-", "failureaccess-", "commons-cli", "commons-io", "audience-annotations", "jackson-")

# 3.8.5 and 3.9.3 refuse a check by itself, and close the connection.
LONE_CHECK = [
    "a_lone_check_in_the_log_of_a_java_server_has_no_effect",
    "a_lone_check_that_took_a_java_leader_its_quorum_is_no_harm_in_any_directory",
    "a_lone_check_that_a_java_leader_has_proposed_has_no_effect_here",
    "poison_through_java_servers_is_refused_by_quorates_leader_and_their_queues_move_on",
]
# And no client deletes a container of its own accord.
CONTAINER = ["what_a_java_leader_counts_wrongly_is_told_and_followed"]


def jars(folder):
    """Fills the folder."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", PACKAGE]
        subprocess.run(download, cwd=place, check=True)
        (archive,) = pathlib.Path(place).glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            for entry in packed:
                name = os.path.basename(entry.name)
                if "/deps/jars/" in entry.name and name.startswith(NEEDED):
                    with open(os.path.join(folder, name), "wb") as file:
                        file.write(packed.extractfile(entry).read())


def tests(folder):
    command = ["cargo", "test", "-p", "quorate", "--features", "runtimes", "--test", "clients", "--", "--test-threads", "1"]
    for name in ["kazoo", "c::", *LONE_CHECK, *CONTAINER]:
        command += ["--skip", name]
    around = {**os.environ, "QUORATE_ZOOKEEPER": os.path.abspath(folder), "QUORATE_REQUIRE_PEERS": "1"}
    return subprocess.run(command, cwd=TREE, env=around, check=False).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jars", metavar="FOLDER")
    folder = parser.parse_args().jars
    if folder:
        return tests(folder)
    with tempfile.TemporaryDirectory() as folder:
        jars(folder)
        return tests(folder)


if __name__ == "__main__":
    sys.exit(main())
