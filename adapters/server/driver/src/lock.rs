//! Locks a mutex, also after a panic of another thread that held it.
//!
//! What these mutexes protect is whole between any two statements, so a panic leaves nothing half done: no poisoning.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks; waits for the holder.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
