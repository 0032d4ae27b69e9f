//! Data folders that earlier versions left (`tests/folders`), opened by this one: on SQLite and on PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod facts;
mod folder;
mod going_on;
#[cfg(feature = "faults")]
mod killed;
mod recovery;
mod refused;
#[cfg(feature = "faults")]
mod tables;

const PROGRAM: &str = env!("CARGO_BIN_EXE_greenroom");

/// Every check for every recorded folder, on either database.
macro_rules! on_both {
    ($($name:ident: $check:path;)+) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                for recorded in crate::folder::all(crate::folder::Kind::Sqlite) {
                    $check(recorded).await;
                }
            })+
        }

        mod postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                for recorded in crate::folder::all(crate::folder::Kind::Postgres) {
                    $check(recorded).await;
                }
            })+
        }
    };
}

on_both! {
    what_was_settled_is_answered_as_it_was: crate::facts::settled;
    what_was_under_way_ends_once: crate::recovery::runs;
    deliveries_that_were_open_arrive_once_or_are_unknown: crate::recovery::deliveries;
    questions_that_were_open_can_be_answered: crate::recovery::approvals;
    old_runs_are_read_on_at_any_number: crate::going_on::streams;
    an_old_event_is_not_taken_again: crate::going_on::keys;
    old_state_storage_and_cursors_serve_new_runs: crate::going_on::runners;
    an_old_conversation_goes_on_and_is_found: crate::going_on::conversations;
}
