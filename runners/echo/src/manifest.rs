//! The manifest of echo, with its config form in English and Chinese.

use greenroom_sdk::{ConfigItem, Manifest, StorageArea, en_zh};

pub(crate) fn manifest() -> Manifest {
    let described = Manifest::new("default").label(en_zh("Echo", "回声")).description(en_zh(
        "Repeats the message; further modes are for tests and demonstrations",
        "原样复述收到的内容;其余模式用于测试和演示",
    ));
    // For the modes that use state.
    let described = described.storage(&[StorageArea::Plugin]);
    items().into_iter().fold(described, Manifest::config)
}

fn items() -> [ConfigItem; 16] {
    [
        ConfigItem::select("style", en_zh("Style", "风格"))
            .option("plain", en_zh("Repeat the text", "原样复述"))
            .option("assistant", en_zh("Friendly", "友好"))
            .default("plain"),
        mode(),
        ConfigItem::boolean("modes", en_zh("Modes by text", "由文本选择模式"))
            .description(en_zh(
                "A text such as `/count n=3` chooses the mode",
                "形如 `/count n=3` 的文本可选择模式",
            ))
            .default(false),
        ConfigItem::integer("n", en_zh("Number of pieces", "片段数")).default(10),
        ConfigItem::integer("at_once", en_zh("Calls open at once", "并发调用数")).default(32),
        ConfigItem::integer("delay_ms", en_zh("Delay in milliseconds", "间隔(毫秒)")).default(0),
        ConfigItem::text("code", en_zh("Code of the failure", "失败代码")).default("echo.failed"),
        ConfigItem::text("message", en_zh("Message of the failure", "失败信息"))
            .default("failed as requested"),
        ConfigItem::boolean("retryable", en_zh("Failure may be retried", "失败可重试"))
            .default(false),
        ConfigItem::select("at", en_zh("Moment of the crash", "崩溃时刻"))
            .option("before", en_zh("Before answering", "回答之前"))
            .option("middle", en_zh("In the middle", "回答中途"))
            .default("middle"),
        ConfigItem::integer("megabytes", en_zh("Size in MB", "大小(MB)")).default(1),
        ConfigItem::select("form", en_zh("Form of the huge answer", "超大回答的形式"))
            .option("completed", en_zh("One message", "一条消息"))
            .option("deltas", en_zh("Many pieces", "许多片段"))
            .default("completed"),
        ConfigItem::select("scope", en_zh("Scope of the state", "状态范围"))
            .option("conversation", en_zh("Conversation", "会话"))
            .option("actor", en_zh("Actor", "用户"))
            .option("subject", en_zh("Subject", "对象"))
            .option("runner", en_zh("Runner", "运行器"))
            .option("binding", en_zh("Binding", "绑定"))
            .default("conversation"),
        ConfigItem::text("key", en_zh("Key of the state", "状态键")).default("echo.last"),
        ConfigItem::boolean("block", en_zh("Block the whole process", "连同进程一起挂起"))
            .default(false),
        ConfigItem::text("run_id", en_zh("The other run", "另一次运行")).default("another-run"),
    ]
}

fn mode() -> ConfigItem {
    let modes = [
        ("echo", "Echo", "复述"),
        ("stream", "Stream pieces", "流式片段"),
        ("count", "Count", "计数"),
        ("slow", "Answer late", "延迟回答"),
        ("state", "Write state", "写入状态"),
        ("huge", "Huge answer", "超大回答"),
        ("calls", "Measure calls", "测量调用"),
        ("fail", "Fail", "失败"),
        ("stubborn", "Ignore cancellation", "忽略取消"),
        ("crash", "Crash", "崩溃"),
        ("panic", "Panic", "恐慌"),
        ("hang", "Hang", "挂起"),
        ("no_terminal", "End without a terminal", "无终止结果"),
        ("unknown", "Unknown result type", "未知结果类型"),
        ("sequence", "Wrong numbers", "错误的序号"),
        ("wrong_run", "Send a result for another run", "冒充其他运行"),
        ("after_terminal", "Send results after the end", "终止后继续输出"),
        ("garbage", "A line that is not JSON", "非 JSON 的行"),
    ];
    let item = ConfigItem::select("mode", en_zh("Mode", "模式")).default("echo");
    modes
        .into_iter()
        .fold(item, |item, (name, english, chinese)| item.option(name, en_zh(english, chinese)))
}
