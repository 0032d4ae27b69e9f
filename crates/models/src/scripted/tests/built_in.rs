//! The built-in model: what it understands, and how it reports results.

use super::*;

#[test]
fn the_built_in_model_says_what_it_is_in_the_users_language() {
    let says = |text: &str| self::text(&Script::built_in().plan(&asks(text), UNIX_EPOCH));
    let english = says("how are you");
    for part in
        ["how are you", "scripted model", "no network", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"]
    {
        assert!(english.contains(part), "{english}");
    }
    let chinese = says("你好吗");
    for part in ["你好吗", "脚本模型", "没有网络", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"]
    {
        assert!(chinese.contains(part), "{chinese}");
    }
}

#[test]
fn the_built_in_model_uses_offered_tools() {
    let script = Script::built_in();
    let plan =
        |request: &ModelRequest| script.plan(request, UNIX_EPOCH + Duration::from_secs(86_400));
    for question in ["What is on my calendar today?", "今天有什么安排", "today's schedule please"]
    {
        let day = json!({"module": "calendar", "method": "read", "input": {"mode": "day", "date": "1970-01-02", "timezone": "UTC"}});
        let request = offering(asks(question), &["project_cli"]);
        assert_eq!(calls(&plan(&request)), [("project_cli".to_owned(), day)], "{question}");
        assert!(calls(&plan(&asks(question))).is_empty(), "no tool is called that is not offered");
        let output = text(&plan(&answered(request, "project_cli", "three meetings")));
        assert!(output.contains("three meetings"), "{output}");
    }
    for (wish, title) in
        [("schedule lunch with Ann today at 12:30", "lunch with Ann"), ("安排午餐 12:30", "午餐")]
    {
        let input = json!({"title": title, "start_at": "1970-01-02T12:30:00Z", "end_at": "1970-01-02T13:30:00Z"});
        let event = json!({"module": "calendar", "method": "create", "input": input});
        let request = offering(asks(wish), &["project_cli"]);
        assert_eq!(calls(&plan(&request)), [("project_cli".to_owned(), event)], "{wish}");
    }
    for question in ["list tools", "有哪些工具?"] {
        let output = text(&plan(&offering(asks(question), &["fs.read", "clock"])));
        assert!(output.contains("fs.read, clock"), "{output}");
    }
}

#[test]
fn the_built_in_model_cancels_nothing_without_an_id() {
    for (wish, part) in [
        ("cancel my meeting tomorrow", "nothing was done"),
        ("please delete the lunch event", "nothing was done"),
        ("取消明天的会议", "什么也没有做"),
        ("把明天的日程删掉", "什么也没有做"),
    ] {
        let request = offering(asks(wish), &["project_cli"]);
        let plan = Script::built_in().plan(&request, UNIX_EPOCH);
        assert!(calls(&plan).is_empty(), "{wish}");
        assert!(text(&plan).contains(part), "{wish}: {}", text(&plan));
    }
}

/// What the built-in model asks the project CLI for, on the second day of 1970.
fn built_in_call(text: &str) -> Option<(String, Value)> {
    let request = offering(asks(text), &["project_cli"]);
    let plan = Script::built_in().plan(&request, UNIX_EPOCH + Duration::from_secs(86_400));
    let (_, args) = calls(&plan).into_iter().next()?;
    let word = |key: &str| args[key].as_str().unwrap().to_owned();
    Some((format!("{}.{}", word("module"), word("method")), args["input"].clone()))
}

fn day(date: &str) -> Value {
    json!({"mode": "day", "date": date, "timezone": "UTC"})
}

fn event(title: &str, date: &str, start: &str, end: &str) -> Value {
    json!({"title": title, "start_at": format!("{date}T{start}:00Z"),
        "end_at": format!("{date}T{end}:00Z")})
}

#[test]
fn the_built_in_model_knows_the_calendar_in_both_languages() {
    let (today, tomorrow, later) = ("1970-01-02", "1970-01-03", "1970-01-04");
    let cases = [
        ("明天有什么安排", "calendar.read", day(tomorrow)),
        ("今天我有什么日程", "calendar.read", day(today)),
        ("我明天下午有会议吗?", "calendar.read", day(tomorrow)),
        ("看看后天的日程", "calendar.read", day(later)),
        ("明天的安排", "calendar.read", day(tomorrow)),
        ("What's on my calendar tomorrow?", "calendar.read", day(tomorrow)),
        ("do I have any meetings today", "calendar.read", day(today)),
        ("am I free tomorrow?", "calendar.read", day(tomorrow)),
        (
            "帮我建一个明天下午三点的会议",
            "calendar.create",
            event("会议", tomorrow, "15:00", "16:00"),
        ),
        (
            "安排后天上午十点半的产品评审",
            "calendar.create",
            event("产品评审", later, "10:30", "11:30"),
        ),
        ("明天晚上8点提醒我交报告", "calendar.create", event("交报告", tomorrow, "20:00", "21:00")),
        ("明天12点和张三吃饭", "calendar.create", event("和张三吃饭", tomorrow, "12:00", "13:00")),
        ("今天安排午餐 12:30", "calendar.create", event("午餐", today, "12:30", "13:30")),
        (
            "Book a meeting with Bob tomorrow at 3pm",
            "calendar.create",
            event("meeting with Bob", tomorrow, "15:00", "16:00"),
        ),
        (
            "please schedule lunch at noon",
            "calendar.create",
            event("lunch", today, "12:00", "13:00"),
        ),
        (
            "schedule lunch on 2026-12-01 at 12:00",
            "calendar.create",
            event("lunch", "2026-12-01", "12:00", "13:00"),
        ),
        (
            "schedule lunch at 12:00 on 2026-12-01",
            "calendar.create",
            event("lunch", "2026-12-01", "12:00", "13:00"),
        ),
        (
            "安排 2026-12-01 15:00 的会议",
            "calendar.create",
            event("会议", "2026-12-01", "15:00", "16:00"),
        ),
        (
            "2026-12-01 下午三点提醒我交报告",
            "calendar.create",
            event("交报告", "2026-12-01", "15:00", "16:00"),
        ),
        ("what is on my calendar on 2026-12-01?", "calendar.read", day("2026-12-01")),
        ("2026-12-01有什么安排", "calendar.read", day("2026-12-01")),
        ("cancel evt_42", "calendar.delete", json!({"event_id": "evt_42"})),
    ];
    for (text, method, input) in cases {
        assert_eq!(built_in_call(text), Some((method.to_owned(), input)), "{text}");
    }
}

#[test]
fn the_built_in_model_knows_memory_and_contacts_in_both_languages() {
    let cases = [
        ("记住我喜欢喝茶", "memory.update", json!({"set": {"喜欢": "喝茶"}})),
        ("请记住,我的生日是五月三号", "memory.update", json!({"set": {"生日": "五月三号"}})),
        ("我喜欢什么", "memory.read", json!({"query": "喜欢"})),
        ("我喜欢喝什么?", "memory.read", json!({"query": "喜欢"})),
        ("我的生日是什么时候", "memory.read", json!({"query": "生日"})),
        ("你记得什么", "memory.read", json!({})),
        ("Remember that I like tea", "memory.update", json!({"set": {"like": "tea"}})),
        ("remember my birthday is May 3", "memory.update", json!({"set": {"birthday": "May 3"}})),
        ("what do I like?", "memory.read", json!({"query": "like"})),
        ("What is my birthday?", "memory.read", json!({"query": "birthday"})),
        ("张三的电话是多少", "contacts.read", json!({"query": "张三"})),
        ("打开通讯录", "contacts.read", json!({})),
        ("what is the email of Ann Lee?", "contacts.read", json!({"query": "Ann Lee"})),
    ];
    for (text, method, input) in cases {
        assert_eq!(built_in_call(text), Some((method.to_owned(), input)), "{text}");
    }
    for text in ["你好", "how are you", "list tools", "什么是量子力学"] {
        assert_eq!(built_in_call(text), None, "{text}");
    }
}

#[test]
fn the_built_in_model_books_nothing_without_a_clear_date_and_time() {
    let says = |text: &str| {
        let request = offering(asks(text), &["project_cli"]);
        let plan = Script::built_in().plan(&request, UNIX_EPOCH + Duration::from_secs(86_400));
        (calls(&plan), self::text(&plan))
    };
    for text in [
        "帮我安排下周一下午三点的会议",
        "周五12点和张三吃饭",
        "安排12月1日15:00的会议",
        "下个月3号上午十点提醒我交报告",
        "三天后上午九点提醒我开会",
        "安排会议 25:00",
        "明天二十五点安排会议",
        "安排 2026-13-01 15:00 的会议",
        "星期三有什么安排",
    ] {
        let (calls, output) = says(text);
        assert_eq!(calls, [], "{text}");
        assert!(output.contains("YYYY-MM-DD") && output.contains("没有"), "{text}: {output}");
    }
    for text in [
        "schedule lunch on friday at 12:00",
        "Book a meeting next week at 3pm",
        "schedule lunch on Dec 1 at 12:00",
        "schedule lunch on the 3rd at noon",
        "schedule lunch on 12/1 at 12:00",
        "schedule lunch at 25:00",
        "schedule lunch tomorrow at 12:75",
        "schedule lunch on 2026-12-32 at 12:00",
        "am I free on Monday?",
    ] {
        let (calls, output) = says(text);
        assert_eq!(calls, [], "{text}");
        assert!(
            output.contains("YYYY-MM-DD") && output.contains("nothing was done"),
            "{text}: {output}"
        );
    }
}

#[test]
fn the_built_in_model_reports_results_in_the_users_language() {
    let says = |question: &str, result: Value| {
        let request = answered(asks(question), "project_cli", &result.to_string());
        text(&Script::built_in().plan(&request, UNIX_EPOCH))
    };
    let found = json!({"module": "memory", "method": "read", "data": {"count": 1,
        "items": [{"key": "喜欢", "value": "喝茶"}]}});
    assert_eq!(says("我喜欢什么", found.clone()), "查到了：\n- 喜欢: 喝茶");
    assert_eq!(says("what do I like", found), "This is what I found:\n- 喜欢: 喝茶");
    let none = json!({"module": "calendar", "method": "read", "data": {"count": 0, "items": []}});
    assert!(says("明天有什么安排", none.clone()).starts_with("没有找到。"));
    assert!(says("what is on tomorrow", none).starts_with("There is nothing."));
    let failed =
        json!({"status": "failure", "error": {"code": "NOT_FOUND", "message": "no such event"}});
    assert_eq!(says("删除 evt_1", failed), "没有成功：no such event (NOT_FOUND)");
}
