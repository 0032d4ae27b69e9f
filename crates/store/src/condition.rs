//! What is known to be wrong with the database: damage that a request or a check found, or files that are gone.
//!
//! Invariant: a problem stays until the next start; after the database is gone nothing is committed.

use crate::StoreError;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub(crate) struct Condition {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    gone: Option<String>,
    damaged: Option<String>,
    /// The last check of the pages, for operators.
    check: Option<String>,
}

impl Condition {
    /// Keeps what an error says about the database.
    pub(crate) fn note(&self, error: &StoreError) {
        let mut state = self.lock();
        let (place, found) = match error {
            StoreError::Gone(found) => (&mut state.gone, found),
            StoreError::Damaged(found) => (&mut state.damaged, found),
            _ => return,
        };
        if place.is_none() {
            tracing::error!(%error, "database problem");
            *place = Some(found.clone());
        }
    }

    pub(crate) fn set_check(&self, found: String) {
        self.lock().check = Some(found);
    }

    pub(crate) fn last_check(&self) -> Option<String> {
        self.lock().check.clone()
    }

    pub(crate) fn refuse_gone(&self) -> Result<(), StoreError> {
        self.lock().gone.clone().map_or(Ok(()), |found| Err(StoreError::Gone(found)))
    }

    /// Whether the database can be relied on.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.refuse_gone()?;
        self.lock().damaged.clone().map_or(Ok(()), |found| Err(StoreError::Damaged(found)))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
