//! A transcript is read by position: items of one event are adjacent, whatever came in between.

use super::support::*;
use greenroom_store::Store;
use greenroom_store::commands::ApplyResults;
use greenroom_store::reads::Direction::{Backward, Forward};
use greenroom_store::reads::conversations::{Position, Span, history, history_within};
use greenroom_store::session_key;

fn at(event_seq: i64, seq: i64) -> Position {
    Position { event_seq, seq }
}

/// The texts of a page of conversation `c`.
async fn texts(store: &Store, span: Span) -> Vec<String> {
    let page = store.read(move |tx| history(tx, W, "c", &span)).await.unwrap();
    page.into_iter().map(|item| item.text.unwrap()).collect()
}

pub(crate) async fn a_transcript_is_paged_both_ways(ground: Ground) {
    let store = ground.open();
    for n in 1..=5 {
        accept(&store, event("c", &n.to_string())).await;
    }
    let back = |before, limit| Span { before, ..Span::whole(Backward, limit) };
    assert_eq!(texts(&store, back(Position::END, 2)).await, ["5", "4"]);
    assert_eq!(texts(&store, back(at(4, 4), 2)).await, ["3", "2"]);
    assert_eq!(texts(&store, back(at(2, 2), 2)).await, ["1"]);
    let on = |after, before, limit| Span { after, before, ..Span::whole(Forward, limit) };
    assert_eq!(texts(&store, on(Position::START, Position::END, 2)).await, ["1", "2"]);
    let between = on(at(2, 2), at(5, 5), 9);
    assert_eq!(texts(&store, between).await, ["3", "4"], "both borders are left out");
    assert!(texts(&store, on(at(5, 5), Position::END, 9)).await.is_empty());
}

pub(crate) async fn a_page_ends_where_its_bytes_do(ground: Ground) {
    let store = ground.open();
    for n in 0..40 {
        accept(&store, event("c", &format!("{n:02}{}", "x".repeat(1000)))).await;
    }
    let page = async |limit: i64, bytes_max: usize| {
        let span = Span::whole(Forward, limit);
        let read = store.read(move |tx| history_within(tx, W, "c", &span, bytes_max));
        let (rows, has_more) = read.await.unwrap();
        let firsts = rows.iter().map(|row| row.text.as_deref().unwrap()[..2].to_owned());
        (firsts.collect::<Vec<_>>(), has_more)
    };
    let numbers = |count: usize| (0..count).map(|n| format!("{n:02}")).collect::<Vec<_>>();
    assert_eq!(page(100, 1 << 20).await, (numbers(40), false));
    assert_eq!(page(40, 1 << 20).await, (numbers(40), false));
    assert_eq!(page(39, 1 << 20).await, (numbers(39), true));
    assert_eq!(page(100, 1).await, (numbers(1), true), "the first is always there");
    let (some, has_more) = page(100, 10_000).await;
    assert!(has_more && (5..10).contains(&some.len()), "{some:?}");
}

pub(crate) async fn answers_stand_with_their_event(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "question 1")).await;
    accept(&store, event("c", "question 2")).await;
    let answer = |n: i64, text: &str| ApplyResults {
        items: vec![item(&format!("answer-{n}"), "assistant", text)],
        chunk: Some(delta_chunk(n, &["x"])),
        ..results(&first)
    };
    apply(&store, answer(1, "answer 1a")).await;
    accept(&store, event("c", "question 3")).await;
    apply(&store, answer(2, "answer 1b")).await;
    let all = ["question 1", "answer 1a", "answer 1b", "question 2", "question 3"];
    assert_eq!(texts(&store, Span::whole(Forward, 9)).await, all);
    // Page by page, in both directions, each place used as the next border.
    for (direction, limit) in [(Forward, 1), (Forward, 2), (Backward, 1), (Backward, 2)] {
        let (mut found, mut span) = (Vec::new(), Span::whole(direction, limit));
        loop {
            let asked = span.clone();
            let page = store.read(move |tx| history(tx, W, "c", &asked)).await.unwrap();
            let Some(last) = page.last() else { break };
            match direction {
                Forward => span.after = Position::of(last),
                Backward => span.before = Position::of(last),
            }
            found.extend(page.into_iter().map(|item| item.text.unwrap()));
        }
        if direction == Backward {
            found.reverse();
        }
        assert_eq!(found, all, "{direction:?} by {limit}");
    }
    let before = Span { before: Position::before_event(2), ..Span::whole(Backward, 9) };
    assert_eq!(texts(&store, before).await, ["answer 1b", "answer 1a", "question 1"]);
}

pub(crate) async fn a_thread_is_paged_by_itself(ground: Ground) {
    let store = ground.open();
    for n in 1..=6 {
        let mut sent = event("c", &n.to_string());
        let thread = (n % 3 != 0).then(|| format!("t{}", n % 3));
        sent.item.as_mut().unwrap().session = session_key(None, thread.as_deref());
        accept(&store, sent).await;
    }
    let thread = |name: &str, direction| {
        let session = Some(session_key(None, Some(name).filter(|name| !name.is_empty())));
        Span { session, ..Span::whole(direction, 9) }
    };
    assert_eq!(texts(&store, thread("t1", Forward)).await, ["1", "4"]);
    assert_eq!(texts(&store, thread("t2", Backward)).await, ["5", "2"]);
    let rest = Span { after: at(1, 1), ..thread("t1", Forward) };
    assert_eq!(texts(&store, rest).await, ["4"]);
    assert_eq!(texts(&store, thread("", Forward)).await, ["3", "6"]);
    assert!(texts(&store, thread("t9", Forward)).await.is_empty());
}

pub(crate) async fn items_of_some_roles_fill_a_page(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "question 1")).await;
    // More tool calls than are read at once, then the answer.
    let tools = (0..40).map(|n| item(&format!("tool-{n}"), "tool", "outcome"));
    let items = tools.chain([item("answer-1", "assistant", "answer 1")]).collect();
    let chunk = Some(delta_chunk(1, &["x"]));
    apply(&store, ApplyResults { items, chunk, ..results(&first) }).await;
    accept(&store, event("c", "question 2")).await;
    let page = async |direction, limit: i64| {
        let roles = &["user", "assistant"];
        let span = Span { roles, ..Span::whole(direction, limit) };
        let (rows, has_more) =
            store.read(move |tx| history_within(tx, W, "c", &span, 1 << 20)).await.unwrap();
        let texts: Vec<String> = rows.into_iter().map(|row| row.text.unwrap()).collect();
        (texts.join(", "), has_more)
    };
    let all = "question 2, answer 1, question 1";
    assert_eq!(page(Backward, 9).await, (all.to_owned(), false));
    assert_eq!(page(Backward, 3).await, (all.to_owned(), false));
    assert_eq!(page(Backward, 2).await, ("question 2, answer 1".to_owned(), true));
    assert_eq!(page(Forward, 2).await, ("question 1, answer 1".to_owned(), true));
}

pub(crate) async fn nothing_is_shown_from_an_event_on(ground: Ground) {
    let store = ground.open();
    for n in 1..=4 {
        accept(&store, event("c", &n.to_string())).await;
    }
    let seen = |before, event_seq| Span {
        before,
        event_seq_before: Some(event_seq),
        ..Span::whole(Backward, 9)
    };
    assert_eq!(texts(&store, seen(Position::END, 3)).await, ["2", "1"]);
    assert_eq!(texts(&store, seen(at(2, 2), 3)).await, ["1"]);
    assert_eq!(texts(&store, seen(at(4, 4), 3)).await, ["2", "1"], "a later cursor shows no more");
    assert!(texts(&store, seen(Position::END, 1)).await.is_empty());
}

pub(crate) async fn a_position_is_read_as_it_was_written(_ground: Ground) {
    assert_eq!(at(12, 7).to_string(), "12.7");
    for position in [at(12, 7), Position::START, Position::END, Position::before_event(3)] {
        assert_eq!(Position::parse(&position.to_string()), Some(position));
    }
    for text in
        ["", "1", "1.", ".1", "1.2.3", "01.2", "1.+2", "a.b", "1. 2", "1.99999999999999999999"]
    {
        assert_eq!(Position::parse(text), None, "{text}");
    }
}
