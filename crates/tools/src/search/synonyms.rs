//! Word lists: stop words, synonyms, and translations of Chinese words.
//!
//! Invariant: common words of tools only; a complete dictionary is a model's job.

use super::stem::stem;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Stop words.
pub(super) const STOP: &[&str] = &[
    "a",
    "an",
    "the",
    "of",
    "to",
    "in",
    "for",
    "and",
    "or",
    "is",
    "are",
    "be",
    "it",
    "its",
    "this",
    "that",
    "with",
    "on",
    "at",
    "by",
    "from",
    "as",
    "me",
    "my",
    "i",
    "you",
    "your",
    "we",
    "please",
    "can",
    "could",
    "want",
    "need",
    "would",
    "like",
    "how",
    "do",
    "does",
    "what",
    "which",
    "some",
    "any",
    "into",
    "use",
    "using",
    "used",
    "tool",
    "our",
    "us",
    "was",
    "were",
    "has",
    "have",
    "had",
    "there",
    "these",
    "those",
    "them",
    "their",
    "if",
    "so",
    "who",
    "whose",
    "where",
    "when",
    "will",
    "should",
    "am",
    "been",
    "just",
    "about",
    "something",
    "s",
    "t",
    "let",
    "tell",
    "give",
    "up",
];

/// Verbs that tools and users use for the same.
const SAME: &[&[&str]] = &[
    &["read", "get", "fetch", "load", "retrieve", "view", "open", "cat"],
    &["list", "show", "enumerate", "browse", "ls", "get"],
    &["create", "add", "new", "make", "insert", "generate"],
    &["write", "save", "store", "put"],
    &["update", "edit", "modify", "change", "set", "patch"],
    &["delete", "remove", "erase", "drop", "rm"],
    &["search", "find", "lookup", "look", "query", "grep"],
    &["send", "post", "publish", "notify"],
    &["move", "rename", "mv"],
    &["copy", "duplicate", "clone"],
    &["run", "execute", "invoke", "launch", "start"],
    &["stop", "cancel", "kill", "abort", "terminate", "end"],
    &["download", "fetch", "pull"],
];

/// Synonyms for users who search for a tool.
const LIKE: &[&[&str]] = &[
    &["upload", "push"],
    &["folder", "directory", "dir"],
    &["file", "document"],
    &["image", "picture", "photo"],
    &["screenshot", "capture", "snapshot"],
    &["mail", "email", "message"],
    &["message", "chat", "dm"],
    &["meeting", "event", "appointment", "calendar", "schedule"],
    &["contact", "person", "people"],
    &["remember", "memory", "note", "recall"],
    &["web", "url", "page", "website", "site", "webpage", "internet", "online"],
    &["issue", "ticket", "bug"],
    &["repo", "repository"],
    &["database", "db", "sql"],
    &["user", "account", "member"],
    &["share", "invite"],
    &["accept", "approve", "confirm"],
    &["reject", "decline", "deny"],
    &["sum", "add", "plus", "calculate"],
    &["size", "length", "count", "large", "big"],
    &["now", "current", "today"],
    &["latest", "recent", "last", "newest"],
    &["chart", "graph", "plot", "diagram"],
    &["draw", "generate", "render", "plot"],
    &["task", "todo"],
    &["reply", "respond", "answer"],
    &["go", "navigate", "visit", "open"],
    &["scrape", "crawl", "extract", "fetch"],
    &["error", "exception", "crash", "failure"],
    &["diff", "difference", "compare", "changes"],
    &["pay", "payment", "charge"],
    &["customer", "client"],
    &["log", "history"],
    &["type", "fill", "enter", "input"],
    &["press", "push", "click", "tap"],
    &["spreadsheet", "sheet", "excel", "worksheet"],
    &["column", "field"],
    &["row", "record"],
    &["direction", "route"],
    &["near", "nearby", "around"],
    &["place", "location", "poi"],
    &["app", "application"],
    &["key", "secret", "token"],
    &["env", "environment"],
    &["var", "variable"],
    &["config", "configuration", "setting", "configure"],
    &["info", "information", "detail", "metadata"],
    &["docs", "documentation"],
    &["function", "lambda"],
    &["vm", "machine"],
    &["container", "docker"],
    &["doc", "document"],
    &["comment", "note"],
    &["label", "tag"],
    &["close", "complete", "finish", "done"],
    &["assign", "assignee"],
    &["alert", "alarm", "monitor", "warning"],
    &["check", "validate", "verify", "inspect"],
    &["price", "cost"],
    &["schema", "structure", "describe"],
    &["group", "team"],
    &["article", "paper", "publication"],
    &["restart", "reboot"],
    &["deploy", "release", "publish"],
    &["build", "compile"],
    &["device", "phone", "simulator"],
    &["organization", "org", "organisation", "company"],
    &["pr", "pull"],
    &["mr", "merge"],
    &["js", "javascript", "script"],
    &["evaluate", "run", "execute"],
    &["kubernetes", "k8s", "kubectl", "cluster"],
    &["retry", "rerun", "again", "restart"],
    &["switch", "checkout"],
    &["elevation", "altitude", "height", "high"],
    &["distance", "far"],
    &["notify", "monitor", "watch", "subscribe"],
    &["schedule", "cron", "recurring", "every", "daily"],
    &["stash", "shelve", "aside"],
    &["revert", "undo", "rollback", "reset", "roll"],
    &["vector", "embedding"],
    &["observation", "fact"],
    &["review", "reviewer"],
    &["picture", "screenshot"],
    &["speech", "spoken", "voice", "audio", "speak"],
    &["tag", "version", "release"],
    &["conversation", "thread"],
    &["board", "kanban"],
    &["headline", "news"],
    &["dropdown", "select", "option"],
    &["choose", "select", "pick"],
    &["previous", "back"],
    &["attach", "upload", "attachment"],
    &["archive", "close"],
    &["buy", "order", "purchase"],
    &["book", "reserve"],
    &["shut", "close", "stop"],
    &["resize", "size"],
    &["workflow", "pipeline", "ci", "build"],
    &["fail", "failure", "error"],
    &["count", "many", "number", "total"],
    &["resolve", "fix", "solve", "close"],
    &["trigger", "start", "run"],
    &["emoji", "reaction", "react", "thumbs"],
    &["blame", "author", "wrote"],
    &["log", "output"],
    &["exec", "shell", "command", "terminal", "execute"],
    &["secret", "password", "credential"],
    &["certificate", "ssl", "tls"],
    &["invoice", "bill"],
    &["backup", "snapshot"],
    &["geocode", "coordinate", "latitude", "longitude", "address"],
    &["transcript", "subtitle", "caption"],
    &["weather", "forecast", "temperature", "rain"],
    &["usage", "quota", "credit", "limit"],
    &["record", "entry", "document"],
    &["describe", "explain"],
    &["domain", "dns"],
    &["enable", "on", "activate"],
    &["disable", "off", "deactivate"],
    &["direction", "navigation", "way", "drive", "driving", "car"],
    &["walk", "walking", "foot"],
    &["bicycle", "bicycling", "cycling", "bike"],
    &["transit", "bus", "subway", "train"],
    &["performance", "slow", "speed", "fast"],
    &["export", "download"],
    &["import", "upload"],
    &["install", "setup"],
    &["profile", "user"],
    &["poi", "restaurant", "shop", "hotel", "place"],
    &["time", "minute", "hour", "duration"],
    &["optimize", "optimization", "best", "improve"],
    &["reach", "reachable", "isochrone"],
    &["resource", "object"],
    &["tab", "page", "window"],
    &["text", "string", "content"],
    &["storage", "bucket", "blob"],
    &["virtual", "vm", "droplet"],
    &["release", "version"],
    &["permission", "access", "role", "right"],
    &["subscribe", "subscription"],
    &["draft", "unsent"],
    &["lint", "check", "quality"],
    &["test", "spec"],
    &["card", "task", "item"],
    &["contact", "customer", "lead"],
];

/// See the top of the file.
const BILINGUAL: &str = include_str!("bilingual.txt");

/// Vague words, with what users of a search mean by them.
const LIGHT: [(&str, &str); 2] = [("make", "create"), ("see", "view")];

/// The weight of a synonym.
const SAME_WEIGHT: f64 = 0.7;
const LIKE_WEIGHT: f64 = 0.5;

static ALIKE: LazyLock<HashMap<String, Vec<(String, f64)>>> = LazyLock::new(|| {
    let mut alike: HashMap<String, Vec<(String, f64)>> = HashMap::new();
    let same = SAME.iter().map(|group| (group, SAME_WEIGHT));
    for (group, weight) in same.chain(LIKE.iter().map(|group| (group, LIKE_WEIGHT))) {
        let group: Vec<String> = group.iter().map(|word| stem(word)).collect();
        for word in &group {
            let others = group.iter().filter(|other| *other != word);
            let others = others.map(|other| (other.clone(), weight));
            alike.entry(word.clone()).or_default().extend(others);
        }
    }
    alike
});

/// A Chinese word: for each of its English words, all synonyms.
type English = Vec<Vec<String>>;

static CHINESE: LazyLock<(usize, HashMap<Vec<char>, English>)> = LazyLock::new(|| {
    let mut words: HashMap<Vec<char>, English> = HashMap::new();
    let lines = BILINGUAL.lines().filter(|line| !line.starts_with('#'));
    let (empty, known): (Vec<&str>, Vec<&str>) =
        lines.filter(|line| *line != "=").partition(|line| line.is_empty() || !has_latin(line));
    for word in empty.iter().flat_map(|line| line.split_whitespace()) {
        words.insert(word.chars().collect(), English::new());
    }
    for line in known {
        let mut parts = line.split(' ');
        let chinese = parts.next().unwrap_or_default().chars().collect();
        let english = parts.map(|part| part.split('|').map(stem).collect()).collect();
        words.insert(chinese, english);
    }
    (words.keys().map(Vec::len).max().unwrap_or(0), words)
});

fn has_latin(line: &str) -> bool {
    line.contains(|c: char| c.is_ascii_alphabetic())
}

/// The stem of the intended word.
pub(super) fn meant(word: &str) -> String {
    let light = LIGHT.iter().find(|(light, _)| stem(light) == word);
    light.map_or_else(|| word.to_owned(), |(_, meant)| stem(meant))
}

/// The stems of synonyms of this stem, with their weights.
pub(super) fn alike(stem: &str) -> &'static [(String, f64)] {
    ALIKE.get(stem).map(Vec::as_slice).unwrap_or_default()
}

/// The longest known word that a Chinese text begins with: its length and translations.
pub(super) fn chinese_word(text: &[char]) -> Option<(usize, &'static [Vec<String>])> {
    let (longest, words) = &*CHINESE;
    let lengths = (1..=text.len().min(*longest)).rev();
    lengths.into_iter().find_map(|length| Some((length, words.get(&text[..length])?.as_slice())))
}
