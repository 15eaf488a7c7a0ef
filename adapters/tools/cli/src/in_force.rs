//! The settings that a server runs with: each part that tells of them sees what has changed meanwhile.

use std::sync::{Arc, Mutex, PoisonError};

use quorate_tokio::zoo_cfg::ZooCfg;

/// The settings in force. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct InForce(Arc<Mutex<Arc<ZooCfg>>>);

impl InForce {
    pub(crate) fn new(cfg: ZooCfg) -> Self {
        Self(Arc::new(Mutex::new(Arc::new(cfg))))
    }

    /// Those of now.
    pub(crate) fn get(&self) -> Arc<ZooCfg> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on these.
    pub(crate) fn set(&self, cfg: ZooCfg) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(cfg);
    }
}
