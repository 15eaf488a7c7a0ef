//! Names to addresses, one thread for each name at most.
//!
//! Names are resolved anew for each dial: in a cluster of containers a restarted peer has another address
//! (ZOOKEEPER-1506). Addresses need no resolver; a resolver that hangs cannot pile up threads.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex};

use async_channel::{Receiver, Sender, bounded};

use crate::error::StartError;
use crate::lock::locked;
use crate::task_group::closed;
use crate::threads::{THREAD_STACK, offload};

/// Turns names into numbers, one thread for each name at most.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resolver {
    busy: Arc<Mutex<BTreeMap<String, Arc<LookUp>>>>,
}

/// A name that is being looked up; dials of the same name that come meanwhile wait for the same answer.
#[derive(Debug)]
struct LookUp {
    answer: Mutex<Option<Answer>>,
    done: Receiver<Infallible>,
}

/// What a look-up has found; errors of the system cannot be cloned.
type Answer = Result<Vec<IpAddr>, (ErrorKind, String)>;

impl Resolver {
    pub(super) async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        if let Ok(ip) = host.parse() {
            return Ok(vec![ip]);
        }
        let look_up = self.look_up(host, |host| look_up(&host))?;
        closed(&look_up.done).await;
        match &*locked(&look_up.answer) {
            Some(Ok(ips)) => Ok(ips.clone()),
            Some(Err((kind, text))) => Err(io::Error::new(*kind, text.clone())),
            None => Err(io::Error::other("the resolver has panicked")),
        }
    }

    /// Joins the look-up that is under way, or begins one.
    fn look_up(
        &self,
        host: &str,
        ask: impl FnOnce(String) -> io::Result<Vec<IpAddr>> + Send + 'static,
    ) -> io::Result<Arc<LookUp>> {
        let mut busy = locked(&self.busy);
        if let Some(look_up) = busy.get(host) {
            return Ok(Arc::clone(look_up));
        }
        let (finish, done) = bounded(1);
        let look_up = Arc::new(LookUp { answer: Mutex::new(None), done });
        let turn = Turn { host: host.to_owned(), resolver: self.clone(), _finish: finish };
        let asked = Arc::clone(&look_up);
        let thread = std::thread::Builder::new().name("quorate-resolve".to_owned());
        // Inserted first: a turn that ends, be it because there is no thread, takes its entry away.
        busy.insert(host.to_owned(), Arc::clone(&look_up));
        drop(busy);
        thread.stack_size(THREAD_STACK).spawn(move || {
            let answer = ask(turn.host.clone()).map_err(|error| (error.kind(), error.to_string()));
            *locked(&asked.answer) = Some(answer);
            drop(turn);
        })?;
        Ok(look_up)
    }
}

/// The right to look a name up. Dropping it tells those who wait for the answer.
#[derive(Debug)]
struct Turn {
    host: String,
    resolver: Resolver,
    _finish: Sender<Infallible>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        locked(&self.resolver.busy).remove(&self.host);
    }
}

pub(super) async fn own_ips(host: &str) -> Result<Vec<IpAddr>, StartError> {
    let failed = |source| StartError::Resolve { host: host.to_owned(), source };
    if let Ok(ip) = host.parse() {
        return Ok(vec![ip]);
    }
    let name = host.to_owned();
    let found = offload("quorate-resolve", move || look_up(&name)).await;
    let ips = found.and_then(|found| found).map_err(failed)?;
    if ips.is_empty() {
        return Err(failed(io::Error::new(ErrorKind::NotFound, "the name has no address")));
    }
    Ok(ips)
}

/// Asks the system for the numbers of a name; blocks.
fn look_up(host: &str) -> io::Result<Vec<IpAddr>> {
    let mut ips = Vec::new();
    for found in (host, 0).to_socket_addrs()? {
        if !ips.contains(&found.ip()) {
            ips.push(found.ip());
        }
    }
    Ok(ips)
}

#[cfg(test)]
mod tests {
    use futures_lite::future::block_on;

    use super::*;

    #[test]
    fn a_name_is_looked_up_once_at_a_time() {
        let resolver = Resolver::default();
        let (answer, answers) = bounded::<IpAddr>(1);
        let hanging = move |_| Ok(answers.recv_blocking().into_iter().collect());
        let first = resolver.look_up("zk1", hanging).unwrap();
        let second = resolver.look_up("zk1", |_| panic!("it is being looked up")).unwrap();
        let other = resolver.look_up("zk2", |_| Ok(Vec::new())).unwrap();
        block_on(closed(&other.done));
        assert!(!first.done.is_closed());

        answer.send_blocking([10, 0, 0, 1].into()).unwrap();
        block_on(closed(&second.done));
        assert_eq!(*locked(&second.answer), Some(Ok(vec![IpAddr::from([10, 0, 0, 1])])));
        assert!(locked(&resolver.busy).is_empty());
    }
}
