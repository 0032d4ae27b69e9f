use super::*;

const FILE: Identity = Identity { device: 1, inode: 2, created_ns: 3 };
const BOOT: Option<[u8; 16]> = Some([1; 16]);
const SALT: Salt = [10, 20];

/// Ten commits, of which six are in the database and four in the log.
fn mark(sync: Sync) -> Mark {
    Mark {
        boot: BOOT,
        sync,
        file: FILE,
        epoch: 3,
        salt: SALT,
        base: 6,
        commits: 10,
        moved: 6,
        synced: if sync == Sync::Full { 10 } else { 8 },
    }
}

fn log(commits: u64) -> LogFacts {
    LogFacts::Read { salt: SALT, commits, tail: Tail::default() }
}

fn facts(mark: Mark, log: LogFacts) -> Facts {
    Facts {
        file: Some(FILE),
        boot: BOOT,
        sync: mark.sync,
        epoch: Some(3),
        mark: Found::Read(mark),
        log,
        sums: Some(6),
    }
}

fn problems(facts: &Facts) -> String {
    judge(facts).problems.join("; ")
}

#[test]
fn a_killed_host_leaves_no_problem() {
    for sync in [Sync::Full, Sync::Normal] {
        let judgement = judge(&facts(mark(sync), log(4)));
        assert_eq!(judgement.problems, [""; 0]);
        assert_eq!((judgement.check, judgement.sums), (Check::Beside, SumsUse::Keep));
        assert_eq!(judgement.mark.commits, 10);
        // Committed, but killed before the mark was written.
        assert_eq!(judge(&facts(mark(sync), log(5))).mark.commits, 11);
    }
}

#[test]
fn fewer_commits_than_marked_are_a_problem() {
    let text = "3 of 10 commits are missing: the write-ahead log is damaged";
    for sync in [Sync::Full, Sync::Normal] {
        assert_eq!(problems(&facts(mark(sync), log(1))), text);
    }
    let text = "4 of 10 commits are missing: the write-ahead log is gone";
    assert_eq!(problems(&facts(mark(Sync::Full), LogFacts::Empty)), text);
    let text = "4 of 10 commits are missing: the header of the write-ahead log is damaged";
    assert_eq!(problems(&facts(mark(Sync::Full), LogFacts::Headless)), text);
}

#[test]
fn power_loss_may_take_what_was_not_synced_and_nothing_else() {
    let after = |sync, commits| {
        let mut facts = facts(mark(sync), log(commits));
        facts.boot = Some([2; 16]);
        problems(&facts)
    };
    assert_eq!(after(Sync::Normal, 2), "");
    assert_eq!(
        after(Sync::Normal, 1),
        "1 of 8 commits are missing: the write-ahead log is damaged"
    );
    assert_eq!(after(Sync::Full, 4), "");
    assert_eq!(after(Sync::Full, 3), "1 of 10 commits are missing: the write-ahead log is damaged");
}

#[test]
fn a_torn_last_transaction_is_no_damage_but_two_transactions_are() {
    let after = |finished_commits, sync| {
        let tail = Tail { finished_commits };
        let mut facts = facts(mark(sync), LogFacts::Read { salt: SALT, commits: 4, tail });
        facts.boot = None;
        problems(&facts)
    };
    assert_eq!(after(0, Sync::Full), "");
    let text = "the write-ahead log is damaged: at least 2 commits cannot be read";
    assert_eq!(after(2, Sync::Full), text);
    assert_eq!(after(2, Sync::Normal), "", "unsynced frames are written in any order");
}

#[test]
fn a_log_is_not_needed_once_it_was_moved() {
    let mut moved = mark(Sync::Full);
    moved.moved = 10;
    for log in [LogFacts::Empty, LogFacts::Headless] {
        let mut facts = facts(moved, log);
        facts.sums = Some(10);
        assert_eq!(problems(&facts), "");
        assert_eq!((judge(&facts).mark.base, judge(&facts).mark.commits), (10, 10));
    }
    let other = LogFacts::Read { salt: [11, 7], commits: 1, tail: Tail::default() };
    let mut facts = facts(moved, other);
    facts.sums = Some(10);
    assert_eq!(problems(&facts), "");
    assert_eq!((judge(&facts).mark.base, judge(&facts).mark.commits), (10, 11));
}

#[test]
fn a_copy_is_checked_before_it_is_ready_and_its_parts_must_be_of_one_time() {
    let copy = |sums, log| {
        let mut facts = facts(mark(Sync::Full), log);
        (facts.file, facts.sums) = (Some(Identity { inode: 9, created_ns: 9, ..FILE }), sums);
        judge(&facts)
    };
    let sound = copy(Some(6), log(4));
    assert_eq!((sound.problems, sound.check), (Vec::new(), Check::First));
    let found = |sums, log| copy(sums, log).problems.join("; ");
    assert_eq!(found(None, log(4)), "the copy has no page checksums");
    assert_eq!(found(Some(5), log(4)), "the page checksums are older than the commit mark");
    assert_eq!(
        found(Some(11), log(4)),
        "the write-ahead log and the commit mark are older than the page checksums"
    );
    let later = LogFacts::Read { salt: [11, 7], commits: 2, tail: Tail::default() };
    assert!(found(Some(6), later).contains("does not belong to the database file"));
}

#[test]
fn a_log_that_another_program_moved_is_not_missing_if_all_pages_can_be_checked() {
    let mut facts = facts(mark(Sync::Full), LogFacts::Empty);
    facts.sums = Some(10);
    let judgement = judge(&facts);
    assert_eq!((judgement.problems, judgement.check), (Vec::new(), Check::First));
    assert_eq!((judgement.mark.base, judgement.mark.commits), (10, 10));
    facts.sums = Some(9);
    assert_eq!(problems(&facts), "4 of 10 commits are missing: the write-ahead log is gone");
}

#[test]
fn a_renumbered_device_is_no_copy() {
    let mut facts = facts(mark(Sync::Full), log(4));
    facts.file = Some(Identity { device: 77, ..FILE });
    assert_eq!(judge(&facts).check, Check::Beside);
}

#[test]
fn a_database_that_an_older_version_used_since_is_judged_without_its_mark() {
    let mut facts = facts(mark(Sync::Full), LogFacts::Empty);
    facts.epoch = Some(4);
    let judgement = judge(&facts);
    assert_eq!((judgement.problems, judgement.sums), (Vec::new(), SumsUse::Renew));
}

#[test]
fn a_missing_database_with_a_mark_is_a_problem() {
    let mut facts = facts(mark(Sync::Full), LogFacts::Empty);
    facts.file = None;
    assert_eq!(problems(&facts), "the database file is missing");
}

#[test]
fn a_damaged_mark_is_a_problem_and_a_missing_one_where_there_was_one() {
    let mut facts = facts(mark(Sync::Full), log(4));
    facts.mark = Found::Damaged;
    assert!(problems(&facts).starts_with("the commit mark is damaged"));
    facts.mark = Found::Missing;
    assert!(problems(&facts).starts_with("the commit mark is missing"));
    // Killed before its first mark, or an older version.
    for sums in [Some(0), None] {
        facts.sums = sums;
        assert_eq!(problems(&facts), "");
    }
}
