//! Checking the small files: the vote and the two epochs, and whether they fit the log.

use super::{Check, Problem, Severity};
use crate::epochs::{self, ACCEPTED, CURRENT, NoEpoch};
use crate::error::at;
use crate::files::Files;
use crate::vote::{self, VOTE};

impl<F: Files + Clone> Check<F> {
    pub(super) fn epochs(&mut self) {
        let dir = self.report.dirs.snapshots.clone();
        let path = dir.join(VOTE);
        match self.files.read(&path, 128) {
            Ok(Some(bytes)) if vote::parse(&bytes).is_none() => {
                let problem = Problem::Vote(String::from_utf8_lossy(&bytes).into_owned());
                self.find(Severity::Error, &path, problem);
            }
            Ok(_) => {}
            Err(error) => {
                self.find(Severity::Error, &path, Problem::File(at("read", &path)(error)));
            }
        }
        let last = self.report.last;
        let has_history = !(self.report.logs.is_empty() && self.report.snapshots.is_empty());
        let mut read = |name: &str| {
            let path = dir.join(name);
            let problem = match epochs::look(&self.files, &path) {
                Ok(Some(Ok(epoch))) => return (Some(epoch), Some(epoch)),
                Ok(None) => {
                    if has_history {
                        let problem = Problem::EpochMissing(last.epoch());
                        self.find(Severity::Repaired, &path, problem);
                    }
                    return (None, Some(last.epoch()));
                }
                Ok(Some(Err(NoEpoch::Garbage(found)))) => Problem::Garbage(found),
                Ok(Some(Err(NoEpoch::OutOfRange(found)))) => Problem::NoEpoch(found),
                Err(error) => Problem::File(error),
            };
            self.find(Severity::Error, &path, problem);
            (None, None)
        };
        let ((found_accepted, accepted), (found_current, current)) =
            (read(ACCEPTED), read(CURRENT));
        (self.report.accepted_epoch, self.report.current_epoch) = (found_accepted, found_current);
        let (accepted_path, current_path) = (dir.join(ACCEPTED), dir.join(CURRENT));
        let (Some(accepted), Some(current)) = (accepted, current) else { return };
        if current > accepted {
            let problem = Problem::NotPromised { current, accepted };
            self.find(Severity::Error, &current_path, problem);
        }
        if last.epoch() > accepted {
            let problem = Problem::LastNotPromised { accepted, last };
            self.find(Severity::Error, &accepted_path, problem);
        } else if last.epoch() > current {
            self.find(Severity::Repaired, &current_path, Problem::Interrupted { current, last });
        }
    }
}
