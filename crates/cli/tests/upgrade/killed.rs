//! The host is killed at every step of an upgrade: the folder then has the version before or after that step, whole,
//! and the next start goes on from there.

use crate::facts;
use crate::folder::{self, Kind, Recorded};
use crate::tables::Tables;
use greenroom_testkit::host::Started;
use std::os::unix::process::ExitStatusExt;

/// More steps than any upgrade has.
const PASSES_MAX: i64 = 1_000;

/// Where a kill strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The copy is written and has not got its name.
    InCopy,
    BeforeMigration,
    /// The script has run.
    InMigration,
    BeforeMigrationCommit,
    AfterMigration,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Place::InCopy => "in_copy",
            Place::BeforeMigration => "before_migration",
            Place::InMigration => "in_migration",
            Place::BeforeMigrationCommit => "before_migration_commit",
            Place::AfterMigration => "after_migration",
        }
    }

    /// How many steps are committed when the place is passed for the n-th time.
    fn committed(self, pass: i64) -> i64 {
        match self {
            Place::AfterMigration => pass,
            _ => pass - 1,
        }
    }

    /// How often an upgrade by so many versions passes the place.
    fn passes(self, versions: i64) -> i64 {
        match self {
            Place::InCopy => versions.min(1),
            _ => versions,
        }
    }
}

macro_rules! places {
    ($($test:ident: $kind:ident $place:ident;)+) => {$(
        #[tokio::test(flavor = "multi_thread")]
        async fn $test() {
            let recorded = folder::all(Kind::$kind);
            let mut kills = 0;
            for recorded in recorded {
                kills += kill_at_every_pass(&recorded, Place::$place).await;
            }
            assert!(kills > 0, "no upgrade passes {:?}", Place::$place);
        }
    )+};
}

places! {
    sqlite_survives_a_kill_while_it_is_copied_aside: Sqlite InCopy;
    sqlite_survives_a_kill_before_a_step: Sqlite BeforeMigration;
    sqlite_survives_a_kill_within_a_step: Sqlite InMigration;
    sqlite_survives_a_kill_before_the_commit_of_a_step: Sqlite BeforeMigrationCommit;
    sqlite_survives_a_kill_after_a_step: Sqlite AfterMigration;
    postgres_survives_a_kill_before_a_step: Postgres BeforeMigration;
    postgres_survives_a_kill_within_a_step: Postgres InMigration;
    postgres_survives_a_kill_before_the_commit_of_a_step: Postgres BeforeMigrationCommit;
    postgres_survives_a_kill_after_a_step: Postgres AfterMigration;
}

/// Kills upgrades of a folder at the first pass of the place, the second, and so on; says how many it has killed.
async fn kill_at_every_pass(recorded: &Recorded, place: Place) -> i64 {
    let mut resumed = Vec::new();
    for pass in 1..=PASSES_MAX {
        let mut opened = recorded.prepare().await;
        let before = Tables::of(&opened).await;
        opened.host.set_fault(Some(format!("{}:{pass}", place.name())));
        let Started::Died(status) = opened.host.try_start().await else {
            // An upgrade that nobody disturbs is what the others have to come to.
            opened.host.stop().await;
            let whole = Tables::of(&opened).await;
            assert_eq!(pass - 1, place.passes(whole.version - before.version), "{place:?}");
            assert!(resumed.iter().all(|shape| *shape == whole.shape), "{resumed:#?}");
            return pass - 1;
        };
        assert_eq!(status.signal(), Some(6), "{}", opened.host.log());
        let killed = Tables::of(&opened).await;
        assert_eq!(killed.version, before.version + place.committed(pass), "{place:?} {pass}");
        for (table, rows) in &before.rows {
            assert_eq!(killed.rows.get(table), Some(rows), "{table}: {place:?} {pass}");
        }
        if killed.version == before.version {
            assert_eq!(killed.shape, before.shape, "{place:?} {pass}");
        }
        opened.host.set_fault(None);
        opened.host.start_again().await;
        facts::check_all(&opened).await;
        assert!(opened.host.stop().await.success(), "{}", opened.host.log());
        resumed.push(Tables::of(&opened).await.shape);
    }
    panic!("an upgrade passes {place:?} more than {PASSES_MAX} times");
}
