//! How long a client's write waits when the leader is killed. The client waits for nothing: it goes from server to server.

use std::time::{Duration, Instant};

use crate::Outcome;
use crate::client::{Client, set};
use crate::ensemble::{Ensemble, Kind};
use crate::load::NODE;

/// Kills the leader so often; prints how long a write waited from the kill on.
pub(crate) fn measure(kind: Kind, kills: usize) -> Outcome<()> {
    let mut ensemble = Ensemble::start(kind)?;
    let took = (0..kills).map(|kill| once(&mut ensemble, kill)).collect::<Outcome<_>>()?;
    report("", took);
    Ok(())
}

/// Kills the leader; how long a write of a client waited that is connected to each of the servers in turn, the leader too.
pub(crate) fn once(ensemble: &mut Ensemble, kill: usize) -> Outcome<Duration> {
    let mut client = Some(Client::connect(ensemble.ports[kill % 3])?);
    let at = Instant::now();
    ensemble.kill_leader()?;
    let mut next = kill % 3;
    loop {
        let asked = client.as_mut().map(|client| client.ask(&set(NODE, 100)));
        if matches!(asked, Some(Ok(_))) {
            break;
        }
        if at.elapsed() > Duration::from_secs(60) {
            return Err("no write succeeds any more".into());
        }
        next = (next + 1) % 3;
        client = Client::connect(ensemble.ports[next]).ok();
    }
    let took = at.elapsed();
    ensemble.start_all()?;
    Ok(took)
}

/// Prints how long writes waited.
pub(crate) fn report(what: &str, mut took: Vec<Duration>) {
    let kills = took.len();
    took.sort_unstable();
    let ms = |took: Option<&Duration>| took.map_or(0.0, |took| took.as_secs_f64() * 1e3);
    println!(
        "  {what}{kills} kills: a write succeeds again after {:.1} ms, at most {:.1} ms",
        ms(took.get(kills / 2)),
        ms(took.last())
    );
}
