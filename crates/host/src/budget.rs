//! Budgets: limits on the cost of model calls per run, per agent and day, and per day for all agents.
//!
//! Invariant: the cost of a call is reserved before it is made, and the call refused if it would exceed a
//! budget; its actual cost is committed before its answer is returned. A crash does not lose a cost.

pub use greenroom_config::{Budget, Micro};
use greenroom_store::commands::ChargeInterrupted;
use greenroom_store::{Store, StoreError, reads};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const MS_PER_DAY: i64 = 86_400_000;
/// Interrupted calls that are charged in one commit.
const CHARGED_TOGETHER: i64 = 512;

/// The budget that a call would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{whose} has spent {} of {} dollars, and this call may cost {}",
    dollars(*.spent),
    dollars(*.budget),
    dollars(*.estimate)
)]
pub(crate) struct Exceeded {
    whose: &'static str,
    spent: Micro,
    budget: Micro,
    estimate: Micro,
}

fn dollars(micro: Micro) -> String {
    format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000)
}

/// The amount spent today, and the amounts reserved by calls in progress.
#[derive(Debug, Default)]
pub(crate) struct Budgets {
    today: Mutex<Today>,
}

#[derive(Debug, Default)]
struct Today {
    day: i64,
    /// By workspace and agent.
    agents: HashMap<(String, String), Spent>,
    /// Reserved by calls in progress, by run.
    runs: HashMap<String, Micro>,
    all: Spent,
}

#[derive(Debug, Default, Clone, Copy)]
struct Spent {
    done: Micro,
    reserved: Micro,
}

impl Spent {
    fn with(self, more: Micro) -> Micro {
        self.done.saturating_add(self.reserved).saturating_add(more)
    }
}

/// A model call to reserve, with the budgets that apply.
#[derive(Debug)]
pub(crate) struct Wish<'a> {
    pub(crate) workspace_id: &'a str,
    pub(crate) run_id: &'a str,
    pub(crate) agent: &'a str,
    pub(crate) budget: Budget,
    /// For all agents together.
    pub(crate) day: Option<Micro>,
    /// The amount that the run has spent so far.
    pub(crate) run_spent: Micro,
    /// The highest cost of the call, as far as it is known.
    pub(crate) estimate: Micro,
    pub(crate) now_ms: i64,
}

/// The reservation of one call, until it is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    budgets: Arc<Budgets>,
    key: (String, String),
    run_id: String,
    day: i64,
    amount: Micro,
}

impl Budgets {
    /// Loads what was spent before this start, including interrupted calls.
    pub(crate) async fn load(store: &Store, now_ms: i64) -> Result<Self, StoreError> {
        let charge = ChargeInterrupted { epoch: store.epoch(), calls_max: CHARGED_TOGETHER };
        while store.commit(charge.clone()).await? {}
        let day = day_of(now_ms);
        let rows = store.read(move |tx| reads::spend::of_day(tx, day)).await?;
        let mut today = Today { day, ..Today::default() };
        for row in rows {
            add(
                &mut today.agents.entry((row.workspace_id, row.agent)).or_default().done,
                row.cost_micro,
            );
            add(&mut today.all.done, row.cost_micro);
        }
        Ok(Self { today: Mutex::new(today) })
    }

    pub(crate) fn reserve(self: &Arc<Self>, wish: &Wish<'_>) -> Result<Reservation, Exceeded> {
        let mut today = self.today(wish.now_ms);
        let key = (wish.workspace_id.to_owned(), wish.agent.to_owned());
        let agent = today.agents.get(&key).copied().unwrap_or_default();
        let within = |whose, budget: Option<Micro>, would: Micro, spent| match budget {
            Some(budget) if would > budget => {
                Err(Exceeded { whose, spent, budget, estimate: wish.estimate })
            }
            _ => Ok(()),
        };
        let reserved = today.runs.get(wish.run_id).copied().unwrap_or(0);
        let run = Spent { done: wish.run_spent, reserved }.with(wish.estimate);
        within("this run", wish.budget.run, run, wish.run_spent)?;
        within("this agent today", wish.budget.day, agent.with(wish.estimate), agent.done)?;
        let all = today.all;
        within("this host today", wish.day, all.with(wish.estimate), all.done)?;
        today.agents.entry(key.clone()).or_default().reserved += wish.estimate;
        *today.runs.entry(wish.run_id.to_owned()).or_default() += wish.estimate;
        today.all.reserved += wish.estimate;
        let (day, amount, run_id) = (today.day, wish.estimate, wish.run_id.to_owned());
        Ok(Reservation { budgets: Arc::clone(self), key, run_id, day, amount })
    }

    /// Adds the cost of a call of today.
    pub(crate) fn spent(&self, workspace_id: &str, agent: &str, cost: Micro, now_ms: i64) {
        let mut today = self.today(now_ms);
        let key = (workspace_id.to_owned(), agent.to_owned());
        add(&mut today.agents.entry(key).or_default().done, cost);
        add(&mut today.all.done, cost);
    }

    /// Resets the amounts when a new day begins.
    fn today(&self, now_ms: i64) -> MutexGuard<'_, Today> {
        let mut today = self.today.lock().unwrap_or_else(PoisonError::into_inner);
        let day = day_of(now_ms);
        if day > today.day {
            *today = Today { day, ..Today::default() };
        }
        today
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut today = self.budgets.today.lock().unwrap_or_else(PoisonError::into_inner);
        if today.day == self.day {
            today.all.reserved -= self.amount;
            if let Some(agent) = today.agents.get_mut(&self.key) {
                agent.reserved -= self.amount;
            }
            let run = today.runs.get_mut(&self.run_id).map(|reserved| {
                *reserved -= self.amount;
                *reserved
            });
            if run.is_some_and(|reserved| reserved <= 0) {
                today.runs.remove(&self.run_id);
            }
        }
    }
}

/// Saturating: an exceeded budget stays exceeded.
fn add(sum: &mut Micro, more: Micro) {
    *sum = sum.saturating_add(more);
}

pub(crate) fn day_of(now_ms: i64) -> i64 {
    now_ms.div_euclid(MS_PER_DAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(budget: Budget, estimate: Micro, run_spent: Micro) -> Wish<'static> {
        Wish {
            workspace_id: "w",
            run_id: "r",
            agent: "a",
            budget,
            day: Some(1_000),
            run_spent,
            estimate,
            now_ms: 0,
        }
    }

    #[test]
    fn a_call_that_would_pass_a_budget_is_refused_before_it_is_made() {
        let budgets = Arc::new(Budgets::default());
        let budget = Budget { run: Some(100), day: Some(150) };
        let first = budgets.reserve(&wish(budget, 90, 0)).unwrap();
        let over_run = budgets.reserve(&wish(budget, 20, 90)).unwrap_err();
        assert_eq!(over_run, Exceeded { whose: "this run", spent: 90, budget: 100, estimate: 20 });
        // Another call of the run at the same time, or of another run of the agent: 90 are reserved already.
        let beside = budgets.reserve(&wish(budget, 20, 0)).unwrap_err();
        assert_eq!(beside, Exceeded { whose: "this run", spent: 0, budget: 100, estimate: 20 });
        let other = Wish { run_id: "s", ..wish(budget, 70, 0) };
        let other = budgets.reserve(&other).unwrap_err();
        assert_eq!(
            other,
            Exceeded { whose: "this agent today", spent: 0, budget: 150, estimate: 70 }
        );
        drop(first);
        budgets.spent("w", "a", 40, 0);
        let second = budgets.reserve(&wish(budget, 70, 0)).unwrap();
        drop(second);
        let all = budgets.reserve(&wish(Budget::default(), 970, 0)).unwrap_err();
        assert_eq!(
            all,
            Exceeded { whose: "this host today", spent: 40, budget: 1_000, estimate: 970 }
        );
    }

    #[test]
    fn a_new_day_begins_with_nothing_spent() {
        let budgets = Arc::new(Budgets::default());
        let budget = Budget { run: None, day: Some(100) };
        budgets.spent("w", "a", 100, 0);
        assert!(budgets.reserve(&wish(budget, 1, 0)).is_err());
        let tomorrow = Wish { now_ms: MS_PER_DAY, ..wish(budget, 1, 0) };
        assert!(budgets.reserve(&tomorrow).is_ok());
    }
}
