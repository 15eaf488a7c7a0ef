//! An ensemble whose servers are processes of the command or of Apache ZooKeeper, killed, started again, and replaced
//! by the other kind in the same directory.

use std::path::PathBuf;
use std::process::Command;

use std::time::Instant;

use crate::common::{Ensemble, Process, jars, until};
use crate::peer::available;

/// What the clients ask of the servers' settings besides those that all tests of the command have.
const SETTINGS: &str = "4lw.commands.whitelist=*\nreconfigEnabled=true\nmaxClientCnxns=0\nextendedTypesEnabled=true\n\
                        znode.container.checkIntervalMs=500\n\
                        DigestAuthenticationProvider.superDigest=super:D/InIHSb7yEEbrWz8b9l71RjZJU=\n";

/// Configuration files for three servers that have not been started.
pub(crate) fn written() -> Ensemble {
    Ensemble::new(&["participant"; 3], SETTINGS)
}

/// Whether there are servers of [`Kind::Java`]. Says so if not, and fails if there must be.
pub(crate) fn java_is_here() -> bool {
    let mut files = jars();
    files.push("/usr/bin/java".to_owned());
    let files: Vec<_> = files.iter().map(String::as_str).collect();
    available(&files, "Debian: zookeeper, default-jre-headless")
}

/// Who made a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The command.
    Quorate,
    /// Apache ZooKeeper, as Debian has it.
    Java,
}

/// A server that votes.
pub(crate) const PARTICIPANT: &str = "participant";
/// One that does not.
pub(crate) const OBSERVER: &str = "observer";

/// One server.
#[derive(Debug)]
struct Seat {
    kind: Kind,
    participates: bool,
    /// None where it was killed.
    process: Option<Process>,
}

/// Servers 1, 2, … They end with it.
#[derive(Debug)]
pub(crate) struct Servers {
    ensemble: Ensemble,
    seats: Vec<Seat>,
    /// Where the jars are of the Java servers that are started from now on, if they are of another version.
    other_java: Option<PathBuf>,
}

impl Servers {
    /// Starts three of the command, and waits until all serve.
    pub(crate) fn start() -> Self {
        let mut servers = Self::written(&[(Kind::Quorate, PARTICIPANT); 3]);
        for id in 1..=3 {
            servers.launch(id);
        }
        servers.leader();
        servers
    }

    /// Starts servers of these kinds and roles, and waits until all serve. The last participant leads.
    pub(crate) fn mixed(seats: &[(Kind, &str)]) -> Self {
        let mut servers = Self::written(seats);
        let leader = servers.last_participant();
        let quorum: Vec<_> = servers.participants().rev().take(servers.majority()).collect();
        // Those elect it: their histories are equal, and no one else has an opinion yet.
        for id in quorum {
            servers.launch(id);
        }
        assert_eq!(servers.leader(), leader);
        for id in servers.ids() {
            servers.launch(id);
        }
        assert_eq!(servers.leader(), leader);
        servers
    }

    fn written(seats: &[(Kind, &str)]) -> Self {
        let roles: Vec<_> = seats.iter().map(|(_, role)| *role).collect();
        let seat = |(kind, role): &(Kind, &str)| Seat {
            kind: *kind,
            participates: *role == PARTICIPANT,
            process: None,
        };
        let (ensemble, seats) = (Ensemble::new(&roles, SETTINGS), seats.iter().map(seat).collect());
        Self { ensemble, seats, other_java: None }
    }

    /// All, whether they run or not.
    pub(crate) fn ids(&self) -> std::ops::RangeInclusive<usize> {
        1..=self.seats.len()
    }

    fn participants(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        self.ids().filter(|id| self.seats[id - 1].participates)
    }

    fn last_participant(&self) -> usize {
        self.participants().next_back().unwrap()
    }

    fn majority(&self) -> usize {
        self.participants().count() / 2 + 1
    }

    /// From now on Java servers are started with the jars in this folder, or as at first.
    pub(crate) fn java_from(&mut self, folder: Option<PathBuf>) {
        self.other_java = folder;
    }

    /// Who made it.
    pub(crate) fn kind(&self, id: usize) -> Kind {
        self.seats[id - 1].kind
    }

    /// The port where its clients connect.
    pub(crate) fn port(&self, id: usize) -> u16 {
        self.ensemble.client[id - 1]
    }

    /// Where the clients of this one connect.
    pub(crate) fn host(&self, id: usize) -> String {
        format!("127.0.0.1:{}", self.port(id))
    }

    /// Where clients connect, as they want it: with commas.
    pub(crate) fn hosts(&self) -> String {
        let hosts: Vec<_> = self.ids().map(|id| self.host(id)).collect();
        hosts.join(",")
    }

    /// Its line of the membership, with the clients' port.
    pub(crate) fn member(&self, id: usize) -> String {
        let role = if self.seats[id - 1].participates { PARTICIPANT } else { OBSERVER };
        let [quorum, election] = [self.ensemble.quorum[id - 1], self.ensemble.election[id - 1]];
        format!("server.{id}=127.0.0.1:{quorum}:{election}:{role};{}", self.host(id))
    }

    /// Where its logs and snapshots are.
    pub(crate) fn data(&self, id: usize) -> PathBuf {
        self.ensemble.dir.path().join(id.to_string()).join("version-2")
    }

    /// What it has said on its standard error since it was started.
    pub(crate) fn log(&self, id: usize) -> String {
        crate::common::read(&self.ensemble.log(id))
    }

    /// What it says to a four-letter word; none if its port is not open.
    pub(crate) fn word(&self, id: usize, word: &str) -> Option<String> {
        self.ensemble.try_ask(id, word)
    }

    /// What it is, from `srvr`: `leader`, `follower`, `observer`; none while it serves nobody.
    pub(crate) fn mode(&self, id: usize) -> Option<String> {
        let said = self.word(id, "srvr")?;
        said.lines().find_map(|line| line.strip_prefix("Mode: ")).map(str::to_owned)
    }

    /// Waits until all that run serve; the leader's id.
    pub(crate) fn leader(&self) -> usize {
        until("a leader whom all follow", || self.followed())
    }

    /// The leader's id, if all that were started and not killed serve.
    pub(crate) fn followed(&self) -> Option<usize> {
        let running = self.ids().filter(|id| self.seats[id - 1].process.is_some());
        let modes: Vec<_> = running.map(|id| Some((id, self.mode(id)?))).collect::<Option<_>>()?;
        modes.into_iter().find_map(|(id, mode)| (mode == "leader").then_some(id))
    }

    /// Whether it has ended of its own accord.
    pub(crate) fn has_ended(&mut self, id: usize) -> bool {
        self.seats[id - 1].process.is_some() && !self.runs(id)
    }

    /// Whether it was started and has not ended since.
    pub(crate) fn runs(&mut self, id: usize) -> bool {
        let process = self.seats[id - 1].process.as_mut();
        process.is_some_and(|process| matches!(process.child.try_wait(), Ok(None)))
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self, id: usize) {
        drop(self.seats[id - 1].process.take());
    }

    /// SIGSTOP: what comes to it is read by nobody.
    pub(crate) fn freeze(&self, id: usize) {
        self.signal(id, "-STOP");
    }

    /// SIGCONT, behind [`Servers::freeze`].
    pub(crate) fn thaw(&self, id: usize) {
        self.signal(id, "-CONT");
    }

    fn signal(&self, id: usize, signal: &str) {
        let pid = self.seats[id - 1].process.as_ref().unwrap().child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// Starts one that does not run.
    pub(crate) fn launch(&mut self, id: usize) {
        let seat = &mut self.seats[id - 1];
        let ensemble = &self.ensemble;
        seat.process.get_or_insert_with(|| match seat.kind {
            Kind::Quorate => ensemble.serve(id),
            Kind::Java => match &self.other_java {
                Some(folder) => ensemble.java_of(id, folder),
                None => ensemble.java(id),
            },
        });
    }

    /// Starts it again, and waits until all that run serve.
    pub(crate) fn restart(&mut self, id: usize) {
        self.kill(id);
        self.launch(id);
        self.leader();
    }

    /// Ends it in order, SIGTERM, and starts one of this kind in its directory; waits until all that run serve.
    pub(crate) fn replace(&mut self, id: usize, kind: Kind) {
        if let Some(mut process) = self.seats[id - 1].process.take() {
            process.terminate();
        }
        self.seats[id - 1].kind = kind;
        self.launch(id);
        self.leader();
    }

    /// Ends all, killed or in order, and starts servers of this kind in their directories; waits until all serve. When
    /// the first was started.
    pub(crate) fn replace_all(&mut self, kind: Kind, killed: bool) -> Instant {
        for seat in &mut self.seats {
            if let Some(mut process) = seat.process.take().filter(|_| !killed) {
                process.terminate();
            }
            seat.kind = kind;
        }
        let begun = Instant::now();
        for id in self.ids() {
            self.launch(id);
        }
        self.leader();
        begun
    }

    /// Kills leaders, and starts them again, until the last participant leads: of equal histories that of the larger id
    /// wins. Its id.
    pub(crate) fn last_leads(&mut self) -> usize {
        let wanted = self.last_participant();
        for _ in 0..10 {
            let leader = self.leader();
            if leader == wanted {
                return wanted;
            }
            self.kill(leader);
            // Where there is no quorum without it, it must be back before there is another.
            let left = self.participants().filter(|id| self.seats[id - 1].process.is_some());
            if left.count() >= self.majority() {
                self.leader();
            }
            self.restart(leader);
        }
        panic!("server {wanted} was never the leader");
    }
}
