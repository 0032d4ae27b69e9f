//! A command in the writer's queue, whatever its type.
//!
//! Invariant: its outcome is kept here until the transaction has ended and is sent only then.

use crate::StoreError;
use crate::commands::Command;
use crate::sql::Tx;
use tokio::sync::oneshot;

pub(crate) trait Job: Send {
    /// Executes the command and keeps its outcome, replacing that of an earlier attempt.
    fn execute(&mut self, tx: &mut dyn Tx) -> Result<(), StoreError>;
    fn is_from_outside(&self) -> bool;
    /// Sends the outcome: its transaction was committed.
    fn finish(self: Box<Self>);
    /// Sends the error: nothing of the command was committed.
    fn fail(self: Box<Self>, error: StoreError);
}

type Reply<C> = Result<<C as Command>::Outcome, StoreError>;

pub(crate) struct Queued<C: Command> {
    pub(crate) command: C,
    outcome: Option<Reply<C>>,
    reply: oneshot::Sender<Reply<C>>,
}

impl<C: Command> Queued<C> {
    pub(crate) fn new(command: C) -> (Box<Self>, oneshot::Receiver<Reply<C>>) {
        let (reply, receiver) = oneshot::channel();
        (Box::new(Self { command, outcome: None, reply }), receiver)
    }
}

impl<C: Command> Job for Queued<C> {
    fn execute(&mut self, tx: &mut dyn Tx) -> Result<(), StoreError> {
        let outcome = self.outcome.insert(self.command.execute(tx));
        outcome.as_ref().map(drop).map_err(StoreError::clone)
    }

    fn is_from_outside(&self) -> bool {
        C::FROM_OUTSIDE
    }

    fn finish(self: Box<Self>) {
        if let Some(outcome) = self.outcome {
            let _ = self.reply.send(outcome);
        }
    }

    fn fail(self: Box<Self>, error: StoreError) {
        let _ = self.reply.send(Err(error));
    }
}
