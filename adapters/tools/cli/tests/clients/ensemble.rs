//! Three servers, each a process of the command, that are killed and started again.

use crate::common::{Ensemble, Process};

/// What the clients ask of the servers' settings besides those that all tests of the command have.
const SETTINGS: &str = "4lw.commands.whitelist=*\nreconfigEnabled=true\nmaxClientCnxns=0\nextendedTypesEnabled=true\n\
                        znode.container.checkIntervalMs=500\n\
                        DigestAuthenticationProvider.superDigest=super:D/InIHSb7yEEbrWz8b9l71RjZJU=\n";

/// Configuration files for three servers that have not been started.
pub(crate) fn written() -> Ensemble {
    Ensemble::new(&["participant"; 3], SETTINGS)
}

/// Three servers. They end with it.
#[derive(Debug)]
pub(crate) struct Servers {
    ensemble: Ensemble,
    /// In the order of ids; none where one was killed.
    processes: Vec<Option<Process>>,
}

impl Servers {
    /// Starts them, and waits until all serve.
    pub(crate) fn start() -> Self {
        let ensemble = written();
        let processes = ensemble.serve_all().into_iter().map(Some).collect();
        let servers = Self { ensemble, processes };
        servers.leader();
        servers
    }

    /// Where the clients of this one connect.
    pub(crate) fn host(&self, id: usize) -> String {
        format!("127.0.0.1:{}", self.ensemble.client[id - 1])
    }

    /// Where clients connect, as they want it: with commas.
    pub(crate) fn hosts(&self) -> String {
        let hosts: Vec<_> = (1..=self.processes.len()).map(|id| self.host(id)).collect();
        hosts.join(",")
    }

    /// Waits until all serve; the leader's id.
    pub(crate) fn leader(&self) -> usize {
        self.ensemble.led()
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self, id: usize) {
        drop(self.processes[id - 1].take());
    }

    /// Starts it again, and waits until all serve.
    pub(crate) fn restart(&mut self, id: usize) {
        self.processes[id - 1] = Some(self.ensemble.serve(id));
        self.leader();
    }
}
