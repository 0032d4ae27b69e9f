//! Who is signed in, and who may: open sessions, sign-in codes and wrong tries together.
//!
//! Invariant: a session is its token in another form: it may what the token may now, and ends with it. What a
//! cookie or a code holds is random and kept as its hash alone, so that comparing tells nothing by its time.

use super::codes::Codes;
use super::open::{Hash, Open};
use super::tries::Tries;
use crate::access::hash_token;
use greenroom_config::Limits;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::watch;

/// 256 bits and 128 bits.
const SESSION_BYTES: usize = 32;
const CODE_BYTES: usize = 16;

pub(crate) struct Sessions {
    limits: Limits,
    /// Told whenever sessions or tokens have ended.
    changes: watch::Sender<()>,
    inside: Mutex<Inside>,
}

struct Inside {
    open: Open,
    codes: Codes,
    tries: Tries,
}

/// What somebody shows to sign in.
pub(super) enum Proof {
    Code(String),
    Token(String),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Wrong,
    /// Too many were wrong: this one was not looked at.
    TooMany,
}

impl Sessions {
    pub(crate) fn new(limits: Limits) -> Self {
        let inside =
            Inside { open: Open::default(), codes: Codes::default(), tries: Tries::default() };
        Self { limits, changes: watch::Sender::new(()), inside: Mutex::new(inside) }
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// A code that opens one session of a token.
    pub(crate) fn new_code(&self, token: Hash) -> Result<String, getrandom::Error> {
        let code = random::<CODE_BYTES>()?;
        self.lock().codes.add(hash_token(&code), token, Instant::now());
        Ok(code)
    }

    /// The token that a proof stands for.
    pub(super) fn prove(
        &self,
        from: IpAddr,
        proof: &Proof,
        is_valid: impl Fn(&Hash) -> bool,
    ) -> Result<Hash, Refused> {
        let (now, mut inside) = (Instant::now(), self.lock());
        if !inside.tries.take(from, now) {
            return Err(Refused::TooMany);
        }
        let token = match proof {
            Proof::Code(code) => {
                inside.codes.take(&hash_token(code), self.limits.sign_in_code, now)
            }
            Proof::Token(token) => Some(hash_token(token)),
        };
        let token = token.filter(is_valid).ok_or(Refused::Wrong)?;
        inside.tries.give_back(from, now);
        Ok(token)
    }

    /// Opens a session and gives what its cookie holds.
    pub(super) fn begin(&self, token: Hash) -> Result<String, getrandom::Error> {
        let secret = random::<SESSION_BYTES>()?;
        self.lock().open.add(hash_token(&secret), token, &self.limits, Instant::now());
        Ok(secret)
    }

    /// The token that a session stands for; asking is using it.
    pub(crate) fn token_of(&self, session: &Hash) -> Option<Hash> {
        self.lock().open.used(session, &self.limits, Instant::now())
    }

    pub(super) fn end(&self, session: &Hash) {
        self.lock().open.end(session);
        self.changes.send_replace(());
    }

    /// Whether a session goes on; asking is not using it.
    pub(crate) fn is_open(&self, session: &Hash) -> bool {
        self.lock().open.is_open(session, &self.limits, Instant::now())
    }

    /// Hears of every end from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Ends the sessions, and the codes, of tokens that are not valid any more.
    pub(crate) fn keep(&self, is_valid: impl Fn(&Hash) -> bool) {
        let mut inside = self.lock();
        inside.open.keep(&is_valid);
        inside.codes.keep(&is_valid);
        drop(inside);
        self.changes.send_replace(());
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn random<const BYTES: usize>() -> Result<String, getrandom::Error> {
    let mut bytes = [0_u8; BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
