//! Search: everything that was kept is found, indexed or not, and nothing else.

use super::support::*;
use greenroom_store::commands::AcceptEvent;
use greenroom_store::reads::search::{Hit, SearchQuery, search};
use greenroom_store::{Store, reads};

pub(crate) fn ask(text: &str) -> SearchQuery {
    SearchQuery {
        workspace: W.to_owned(),
        text: text.to_owned(),
        top_k: 10,
        ..SearchQuery::default()
    }
}

pub(crate) async fn find(store: &Store, query: SearchQuery) -> Vec<Hit> {
    store.read(move |tx| search(tx, &query)).await.unwrap()
}

/// The texts of the items that hold the whole query.
pub(crate) async fn whole(store: &Store, query: SearchQuery) -> Vec<String> {
    let hits = find(store, query).await.into_iter().filter(|hit| hit.score > 1.0);
    hits.map(|hit| hit.item.text.unwrap()).collect()
}

/// Says something in a conversation.
pub(crate) async fn say(store: &Store, conversation: &str, text: &str) {
    say_as(store, conversation, text, |_| ()).await;
}

pub(crate) async fn say_as(
    store: &Store,
    conversation: &str,
    text: &str,
    change: impl FnOnce(&mut AcceptEvent),
) {
    let before = rows(store).await.iter().find(|row| row.0 == "events").unwrap().1;
    let mut sent = event(conversation, &format!("event-{before}"));
    sent.item.as_mut().unwrap().text = Some(text.to_owned());
    change(&mut sent);
    accept(store, sent).await;
}

pub(crate) async fn index_all(store: &Store) {
    while store.index_some(1000).await.unwrap() > 0 {}
}

/// Many items at once, behind the store's back.
fn fill(ground: &Ground, conversation: &str, texts: &[String]) {
    for (batch, texts) in texts.chunks(2000).enumerate() {
        let row = |(n, text): (usize, &String)| {
            let seq = batch * 2000 + n + 1;
            format!(
                "('{W}', '{conversation}', {seq}, {seq}, 'i{seq}', 'user', '{text}', '{{}}', 5)"
            )
        };
        let values: Vec<String> = texts.iter().enumerate().map(row).collect();
        ground.execute(&format!(
            "INSERT INTO transcript (workspace_id, conversation_id, event_seq, seq, item_id, role,
                 text, body, created_at) VALUES {}",
            values.join(",")
        ));
    }
}

pub(crate) async fn a_sentence_among_a_hundred_thousand_is_found_first(ground: Ground) {
    let store = ground.open();
    // Others hold every pair of its characters, in another order, or the half of it.
    let others: Vec<String> = (0..100_000)
        .map(|n| match n % 5 {
            0 => format!("第{n}次:数据库连接断开,请查连接信息"),
            1 => format!("今天的数据已经入库,连接正常 {n}"),
            2 => format!("信息部门第{n}号:数据 库 连接 信息"),
            3 => format!("the database connection info is in ticket {n}"),
            _ => format!("我们明天再讨论第{n}个问题吧"),
        })
        .collect();
    let sentence = "请把生产环境的数据库连接信息发给我";
    fill(&ground, "c", &others[..30_000]);
    say(&store, "d", sentence).await;
    fill(&ground, "e", &others[30_000..]);
    assert_eq!(whole(&store, ask("数据库连接信息")).await, [sentence], "nothing is indexed yet");
    index_all(&store).await;
    for text in ["数据库连接信息", "「数据库连接信息」", "境的数据库连", "生产环境 连接信息"]
    {
        let hits = find(&store, ask(text)).await;
        assert_eq!(hits[0].item.text.as_deref(), Some(sentence), "{text}");
        assert!(hits[0].score > 1.0 && hits[1].score < 1.0, "{text}");
        assert_eq!(hits.len(), 10, "{text}");
    }
    let hits = find(&store, ask("ticket 99998")).await;
    assert_eq!(hits[0].item.text.as_ref(), Some(&others[99_998]));
    say(&store, "d", "刚刚又有人问数据库连接信息").await;
    let hits = whole(&store, ask("数据库连接信息")).await;
    assert_eq!(hits, ["刚刚又有人问数据库连接信息", sentence], "the shorter one first");
}

pub(crate) async fn words_are_found_in_whatever_way_they_are_written(ground: Ground) {
    let store = ground.open();
    let texts = [
        "The CAFÉ opens at nine",
        "connect to https://db.example.com:5432/main_db",
        "请用 MySQL 8 的数据库",
        "東京タワーとがか",
        "한국어 문장입니다",
        "ＦＵＬＬ ｗｉｄｔｈ",
        "สวัสดีชาวโลก",
        "party 🎉🎊 tonight",
    ];
    for text in texts {
        say(&store, "c", text).await;
    }
    let cases = [
        ("cafe", Some(0)),
        ("Cafe\u{301} NINE", Some(0)),
        ("caf", None),
        ("db.example.com", Some(1)),
        ("5432", Some(1)),
        ("example.org", None),
        ("mysql", Some(2)),
        ("mysql8", None),
        ("MySQL 数据库", Some(2)),
        ("用mysql", Some(2)),
        ("据", Some(2)),
        ("京タワ", Some(3)),
        ("がか", Some(3)),
        ("かか", None),
        ("문장", Some(4)),
        ("full WIDTH", Some(5)),
        ("ชาวโลก", Some(6)),
        ("🎊", Some(7)),
    ];
    for indexed in [false, true] {
        for (query, expected) in cases {
            let found = whole(&store, ask(query)).await;
            let expected: Vec<&str> = expected.map(|n| texts[n]).into_iter().collect();
            assert_eq!(found, expected, "`{query}`, indexed: {indexed}");
        }
        index_all(&store).await;
    }
}

pub(crate) async fn an_item_is_found_from_its_commit_on(ground: Ground) {
    let store = ground.open();
    for n in 0..7 {
        say(&store, "c", &format!("needle {n}")).await;
        let found = whole(&store, ask("needle")).await;
        let expected: Vec<String> = (0..=n).rev().map(|n| format!("needle {n}")).collect();
        assert_eq!(found, expected);
        if n % 3 == 0 {
            store.index_some(2).await.unwrap();
        }
    }
    assert!(store.index_some(1).await.unwrap() > 0, "some are indexed, some are not");
    store.close();
    drop(store);
    let store = ground.open();
    assert_eq!(
        whole(&store, ask("needle")).await.len(),
        7,
        "after a host that ended before indexing"
    );
    index_all(&store).await;
    assert_eq!(whole(&store, ask("needle")).await.len(), 7);
    assert_eq!(store.index_some(10).await.unwrap(), 0);
}

pub(crate) async fn many_who_index_at_once_index_each_item_once(ground: Ground) {
    let store = ground.open();
    let texts: Vec<String> = (0..500).map(|n| format!("thing {n}")).collect();
    fill(&ground, "c", &texts);
    while store.index_some(1).await.unwrap() > 0 {
        let steps = (0..8).map(|_| store.index_some(20));
        for left in futures_util::future::join_all(steps).await {
            left.unwrap();
        }
    }
    let all = SearchQuery { top_k: 200, ..ask("thing") };
    assert_eq!(find(&store, all).await.len(), 200);
    let mut ids: Vec<i64> =
        find(&store, ask("thing 7")).await.into_iter().map(|hit| hit.item.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 10);
}

pub(crate) async fn odd_texts_and_queries_do_no_harm(ground: Ground) {
    let store = ground.open();
    let long: String = (0..75_000).map(|n| format!("词{n}长文")).collect();
    assert!(long.len() > 1_000_000, "{}", long.len());
    let odd =
        ["a\0b", "", "。。。", "\u{202e}rtl", "👩\u{200d}👩\u{200d}👧", "\" OR * NOT (", &long];
    for text in odd {
        say(&store, "c", text).await;
    }
    let no_text = |sent: &mut AcceptEvent| sent.item.as_mut().unwrap().text = None;
    say_as(&store, "c", "", no_text).await;
    for indexed in [false, true] {
        for query in ["", " ", "。!", "\0", "\"", "*", "()", "^", "-", "{}:[]", "\u{200d}"] {
            assert!(find(&store, ask(query)).await.is_empty(), "`{query}`, indexed: {indexed}");
        }
        let cases = [
            ("b", "a\u{fffd}b"),
            ("a\0b", "a\u{fffd}b"),
            ("RTL", "\u{202e}rtl"),
            ("👧", "👩\u{200d}👩\u{200d}👧"),
            ("or not", "\" OR * NOT ("),
            ("词74998长文词74999长", &long),
        ];
        for (query, expected) in cases {
            assert!(whole(&store, ask(query)).await == [expected], "`{query}`, indexed: {indexed}");
        }
        let part = &long[long.find("词74200").unwrap()..];
        assert!(part.len() > 10_000, "{}", part.len());
        assert_eq!(whole(&store, ask(part)).await.len(), 1, "ten thousand bytes and more");
        let words: String = (0..2000).map(|n| format!("nothing{n} ")).collect();
        assert!(find(&store, ask(&words)).await.is_empty());
        assert!(find(&store, ask(&"甲乙".repeat(2000))).await.is_empty());
        index_all(&store).await;
    }
}

pub(crate) async fn parts_of_a_query_come_after_all_of_it_the_rarest_first(ground: Ground) {
    let store = ground.open();
    let common: Vec<String> = (0..300).map(|n| format!("the report of day {n}")).collect();
    fill(&ground, "c", &common);
    say(&store, "d", "quarterly numbers").await;
    say(&store, "d", "the quarterly report is late").await;
    fill(&ground, "e", &common);
    for indexed in [false, true] {
        let hits = find(&store, ask("quarterly report")).await;
        let texts: Vec<_> = hits.iter().map(|hit| hit.item.text.as_deref().unwrap()).collect();
        assert_eq!(texts[0], "the quarterly report is late", "indexed: {indexed}");
        assert_eq!(texts.len(), 10, "indexed: {indexed}");
        assert!(
            texts[1..].iter().all(|text| text.contains("report") || text.contains("quarterly"))
        );
        let scores: Vec<f64> = hits.iter().map(|hit| hit.score).collect();
        assert!(scores[0] > 1.0 && scores[1] < 1.0 && scores.is_sorted_by(|a, b| a >= b));
        if indexed {
            assert_eq!(texts[1], "quarterly numbers");
        }
        index_all(&store).await;
    }
}

pub(crate) async fn a_hit_shows_where_it_matches(ground: Ground) {
    let store = ground.open();
    say(&store, "c", "请把「数据库 Café 连接信息」\n发给我").await;
    index_all(&store).await;
    let hits = find(&store, ask("cafe 连接信息")).await;
    assert_eq!(hits[0].snippet, "请把「数据库 Café 连接信息」 发给我");
    let marked: Vec<(usize, usize)> =
        hits[0].highlights.iter().map(|span| (span.start, span.end)).collect();
    assert_eq!(marked, [(7, 11), (12, 16)]);
    assert_eq!((hits[0].item.event_seq, hits[0].item.seq), (1, 1));
}

/// The index changes how fast something is found, not what.
pub(crate) async fn the_index_finds_what_a_scan_finds(ground: Ground) {
    let store = ground.open();
    let mut random = greenroom_testkit::random::Random::from_seed(7);
    let alphabet = ["数", "据", "库", "连", " a", "b ", "B", ",", "。", "é", "1", " "];
    let mut text = |length: u64| -> String {
        (0..=random.below(length)).map(|_| alphabet[random.below(12) as usize]).collect()
    };
    let texts: Vec<String> = (0..190).map(|_| text(9)).collect();
    let queries: Vec<String> = (0..150).map(|_| text(4)).collect();
    fill(&ground, "c", &texts);
    let mut scanned = Vec::new();
    for query in &queries {
        scanned.push(whole(&store, SearchQuery { top_k: 200, ..ask(query) }).await);
    }
    assert!(scanned.iter().filter(|found| !found.is_empty()).count() > 50);
    store.index_some(90).await.unwrap();
    for (query, expected) in queries.iter().zip(&scanned) {
        let found = whole(&store, SearchQuery { top_k: 200, ..ask(query) }).await;
        assert_eq!(&found, expected, "`{query}`, half of them indexed");
    }
    index_all(&store).await;
    for (query, expected) in queries.iter().zip(&scanned) {
        let found = whole(&store, SearchQuery { top_k: 200, ..ask(query) }).await;
        assert_eq!(&found, expected, "`{query}`");
    }
}

pub(crate) async fn an_index_of_a_long_transcript_is_asked_from_its_newest_end(ground: Ground) {
    let store = ground.open();
    // More items than the first two stretches of numbers hold.
    let texts: Vec<String> = (0..80_000)
        .map(|n| if n % 1000 == 0 { format!("rare {n}") } else { format!("often {n}") })
        .collect();
    fill(&ground, "c", &texts);
    // One a minute; one of the newest is dated back.
    ground.execute("UPDATE transcript SET created_at = seq * 60000");
    ground.execute("UPDATE transcript SET created_at = 500 * 60000 WHERE text = 'rare 79000'");
    index_all(&store).await;
    let query = |text: &str, top_k| SearchQuery { top_k, ..ask(text) };
    let within = |from: i64, to: i64| SearchQuery {
        after_ms: Some(from * 60_000),
        before_ms: Some(to * 60_000),
        ..query("rare", 200)
    };
    let spans: [(i64, i64, &[&str]); 4] = [
        (0, 1500, &["rare 0", "rare 1000", "rare 79000"]),
        (40_000, 42_000, &["rare 40000", "rare 41000"]),
        (78_500, 90_000, &[]),
        (77_500, 90_000, &["rare 78000"]),
    ];
    for (from, to, expected) in spans {
        let mut found = whole(&store, within(from, to)).await;
        found.sort();
        assert_eq!(found, expected, "{from} to {to}");
    }
    let found = whole(&store, query("rare", 200)).await;
    assert_eq!(found.len(), 80);
    assert_eq!(found[0], "rare 0", "the shortest");
    let found = whole(&store, query("often", 5)).await;
    assert_eq!(found.len(), 5);
    assert!(found.iter().all(|text| text.starts_with("often 799")), "{found:?}");
    for n in [0, 1, 4095, 4096, 32_767, 65_536, 79_999] {
        let found = whole(&store, query(&texts[n], 3)).await;
        assert_eq!(found, [texts[n].clone()]);
    }
    let span = reads::conversations::Span::whole(reads::Direction::Backward, 3);
    let page =
        store.read(move |tx| reads::conversations::history(tx, W, "c", &span)).await.unwrap();
    assert_eq!(page.len(), 3);
}
