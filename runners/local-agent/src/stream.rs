//! A response as it is written: reasoning, and the arguments of calls, for a client that shows them.
//!
//! Invariant: a call has the id and the name that it is carried out with. Pieces are joined, so that a fast model does
//! not flood the host.

use greenroom_sdk::{RunCtx, RunFailure, RunResult};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// A piece is sent when it is this long, or the one before is this old.
const PIECE_BYTES: usize = 96;
const PIECE_AGE: Duration = Duration::from_millis(40);

/// What a response needs to be shown.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'s> {
    /// Ids of the run's calls so far.
    pub(crate) used: &'s HashSet<String>,
    /// The granted name for one that a provider rewrote.
    pub(crate) resolve_name: &'s (dyn Fn(&str) -> Option<String> + Sync),
}

pub(crate) struct Stream<'s> {
    ctx: &'s RunCtx,
    shown: Shown<'s>,
    used: HashSet<String>,
    /// Id and name of each call, by the provider's id.
    calls: HashMap<String, (String, String)>,
    piece: String,
    /// The call that the piece belongs to; none: it is reasoning.
    call: Option<String>,
    sent_at: Instant,
}

impl<'s> Stream<'s> {
    pub(crate) fn new(ctx: &'s RunCtx, shown: Shown<'s>) -> Self {
        Self {
            ctx,
            shown,
            used: shown.used.clone(),
            calls: HashMap::new(),
            piece: String::new(),
            call: None,
            sent_at: Instant::now(),
        }
    }

    pub(crate) async fn reasoning(&mut self, text: &str) -> Result<(), RunFailure> {
        self.add(None, text).await
    }

    /// A call begins.
    pub(crate) async fn call(&mut self, provider_id: &str, name: &str) -> Result<(), RunFailure> {
        self.flush().await?;
        let id = unique(provider_id, &mut self.used);
        let name = (self.shown.resolve_name)(name).unwrap_or_else(|| name.to_owned());
        self.calls.insert(provider_id.to_owned(), (id, name));
        self.call = Some(provider_id.to_owned());
        self.send().await
    }

    pub(crate) async fn arguments(
        &mut self,
        provider_id: &str,
        text: &str,
    ) -> Result<(), RunFailure> {
        if !self.calls.contains_key(provider_id) {
            return Ok(());
        }
        self.add(Some(provider_id), text).await
    }

    /// Something else comes next.
    pub(crate) async fn flush(&mut self) -> Result<(), RunFailure> {
        if self.piece.is_empty() { Ok(()) } else { self.send().await }
    }

    async fn add(&mut self, call: Option<&str>, text: &str) -> Result<(), RunFailure> {
        if self.call.as_deref() != call {
            self.flush().await?;
            self.call = call.map(str::to_owned);
        }
        self.piece.push_str(text);
        match self.piece.len() >= PIECE_BYTES || self.sent_at.elapsed() >= PIECE_AGE {
            true => self.flush().await,
            false => Ok(()),
        }
    }

    async fn send(&mut self) -> Result<(), RunFailure> {
        let piece = std::mem::take(&mut self.piece);
        self.sent_at = Instant::now();
        let call = self.call.as_ref().and_then(|provider_id| self.calls.get(provider_id));
        let result = match call {
            Some((id, name)) => RunResult::tool_delta(id, name, piece),
            None => RunResult::reasoning(piece),
        };
        self.ctx.emit(result).await
    }
}

/// The id of a call that no other call of the run has.
pub(crate) fn unique(id: &str, used: &mut HashSet<String>) -> String {
    let mut unique = id.to_owned();
    let mut count = 1;
    while unique.is_empty() || !used.insert(unique.clone()) {
        count += 1;
        unique = format!("{}-{count}", if id.is_empty() { "call" } else { id });
    }
    unique
}
