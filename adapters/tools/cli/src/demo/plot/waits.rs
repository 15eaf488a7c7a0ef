//! What the demo waits for: each change that a server tells, and what has to be so before it goes on.

use std::time::Instant;

use super::Plot;
use crate::demo::error::{Awaited, DemoError};
use crate::demo::leaders::{Leadership, Marks};
use crate::demo::news::{News, Seen};
use crate::event::{ChangeLine, State};

impl Plot {
    /// Waits for a leader that serves, noting what comes before.
    pub(super) async fn led(
        &mut self,
        awaited: &Awaited,
        since: Instant,
        marks: &mut Marks,
    ) -> Result<Leadership, DemoError> {
        loop {
            let (at, line) = self.next(awaited, since).await?;
            marks.note(at, &line);
            if line.serving && line.state == State::Leading {
                return Ok(Leadership { leader: line.server, epoch: line.current_epoch, at });
            }
        }
    }

    /// Waits until `server` serves.
    pub(super) async fn serves(
        &mut self,
        server: i64,
        since: Instant,
    ) -> Result<Instant, DemoError> {
        let awaited = Awaited::Return(server);
        loop {
            let (at, line) = self.next(&awaited, since).await?;
            if line.server == server && line.serving {
                return Ok(at);
            }
        }
    }

    /// Waits until all that run serve under this leadership.
    pub(super) async fn all_serve(&mut self, leadership: Leadership) -> Result<(), DemoError> {
        let Leadership { leader, epoch, .. } = leadership;
        let since = Instant::now();
        loop {
            let serves = |line: &ChangeLine| {
                line.serving && line.leader == Some(leader) && line.current_epoch == epoch
            };
            let mut servers = self.ensemble.running();
            servers.retain(|id| !self.latest.get(id).is_some_and(serves));
            if servers.is_empty() {
                return Ok(());
            }
            self.next(&Awaited::Serving { servers, leader, epoch }, since).await?;
        }
    }

    /// The next change of a running server; an error if it takes too long or a server ends by itself.
    pub(super) async fn next(
        &mut self,
        awaited: &Awaited,
        since: Instant,
    ) -> Result<(Instant, ChangeLine), DemoError> {
        let by = tokio::time::Instant::from_std(since + self.options.patience);
        loop {
            let seen = tokio::time::timeout_at(by, self.events.recv()).await;
            let Ok(seen) = seen else {
                let seconds = since.elapsed().as_secs_f64();
                return Err(DemoError::Late { seconds, awaited: awaited.clone() });
            };
            let Some(seen) = seen else {
                return Err(DemoError::AllEnded(awaited.clone()));
            };
            if !self.ensemble.is_current(&seen) {
                continue;
            }
            let Seen { at, server, news, .. } = seen;
            let mut line = match news {
                News::Change(line) => line,
                News::Lost(changes) => return Err(DemoError::ChangesLost { server, changes }),
                News::Ended(last) => return Err(DemoError::Ended { server, last }),
            };
            line.at_ms = self.at(at);
            self.leaders.note(&line);
            self.latest.insert(server, line.clone());
            self.view.change(line.clone());
            return Ok((at, line));
        }
    }
}
