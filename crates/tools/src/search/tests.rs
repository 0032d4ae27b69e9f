use super::*;
use crate::{Risk, Source};
use serde_json::json;
use std::time::Duration;

fn tool(name: &str, description: &str, parameters: &[&str]) -> Tool {
    let properties: serde_json::Map<String, Value> =
        parameters.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema: json!({"type": "object", "properties": properties}),
        output_schema: None,
        source: Source::Mcp("test".to_owned()),
        risk: Risk::Read,
        timeout: Duration::from_secs(1),
    }
}

/// Name, description and parameters.
const TOOLS: &[(&str, &str, &[&str])] = &[
    (
        "fs.read_text_file",
        "Read the complete contents of a file as text",
        &["path", "head", "tail"],
    ),
    (
        "fs.write_file",
        "Create a new file or overwrite an existing file with new content",
        &["path", "content"],
    ),
    ("fs.edit_file", "Make line-based edits to a text file", &["path", "edits", "dryRun"]),
    ("fs.create_directory", "Create a new directory or ensure a directory exists", &["path"]),
    (
        "fs.list_directory",
        "Get a detailed listing of all files and directories in a path",
        &["path"],
    ),
    (
        "fs.list_directory_with_sizes",
        "List files and directories in a path, including sizes",
        &["path", "sortBy"],
    ),
    ("fs.move_file", "Move or rename files and directories", &["source", "destination"]),
    (
        "fs.search_files",
        "Recursively search for files and directories matching a pattern",
        &["path", "pattern", "excludePatterns"],
    ),
    ("fs.get_file_info", "Retrieve detailed metadata about a file or directory", &["path"]),
    (
        "memory.create_entities",
        "Create multiple new entities in the knowledge graph",
        &["entities"],
    ),
    (
        "memory.create_relations",
        "Create multiple new relations between entities in the knowledge graph",
        &["relations"],
    ),
    (
        "memory.delete_entities",
        "Delete multiple entities and their relations from the knowledge graph",
        &["entityNames"],
    ),
    ("memory.search_nodes", "Search for nodes in the knowledge graph based on a query", &["query"]),
    ("git.git_commit", "Records changes to the repository", &["repo_path", "message"]),
    ("git.git_log", "Shows the commit logs", &["repo_path", "max_count"]),
    (
        "git.git_create_branch",
        "Creates a new branch from an optional base branch",
        &["repo_path", "branch_name"],
    ),
    ("git.git_diff", "Shows differences between branches or commits", &["repo_path", "target"]),
    (
        "github.create_issue",
        "Create a new issue in a GitHub repository",
        &["owner", "repo", "title", "body"],
    ),
    ("github.merge_pull_request", "Merge a pull request", &["owner", "repo", "pull_number"]),
    ("github.search_code", "Search for code across GitHub repositories", &["q"]),
    (
        "fetch.fetch",
        "Fetches a URL from the internet and extracts its contents as markdown",
        &["url", "max_length"],
    ),
    ("time.get_current_time", "Get current time in a specific timezone", &["timezone"]),
    (
        "time.convert_time",
        "Convert time between timezones",
        &["source_timezone", "time", "target_timezone"],
    ),
    ("slack.post_message", "Post a new message to a Slack channel", &["channel_id", "text"]),
    ("slack.list_channels", "List public channels in the workspace", &["limit", "cursor"]),
    ("mail.sendEmail", "Send an e-mail to one or more recipients", &["to", "subject", "body"]),
    ("browser.take_screenshot", "Take a screenshot of the current page", &["filename"]),
    ("browser.click", "Perform click on a web page", &["element", "ref"]),
    ("sqlite.read_query", "Execute a SELECT query on the SQLite database", &["query"]),
    ("sqlite.list_tables", "List all tables in the SQLite database", &[]),
    ("weather.forecast", "Get the weather forecast for a location", &["latitude", "longitude"]),
    ("maps.directions", "Get directions between two points", &["origin", "destination", "mode"]),
    ("kb.问答", "在知识库中检索答案", &["问题"]),
    ("crm.客户列表", "列出所有客户的名称与联系方式", &["页码"]),
];

fn tools() -> Vec<Tool> {
    let listed = TOOLS.iter().map(|(name, about, parameters)| tool(name, about, parameters));
    std::iter::once(project_cli::tool()).chain(listed).collect()
}

fn search(query: &str, top_k: usize) -> Vec<String> {
    ToolIndex::new(&tools()).search(query, top_k, |_| true)
}

#[test]
fn the_intended_tool_is_first() {
    let cases = [
        ("read a text file", "fs.read_text_file"),
        ("fs.move_file", "fs.move_file"),
        ("readTextFile", "fs.read_text_file"),
        ("rename a file", "fs.move_file"),
        ("make a new folder", "fs.create_directory"),
        ("how large are the files in this directory", "fs.list_directory_with_sizes"),
        ("find files by pattern", "fs.search_files"),
        ("file metadata", "fs.get_file_info"),
        ("overwrite a file with content", "fs.write_file"),
        ("edit lines of a file", "fs.edit_file"),
        ("knowledge graph search", "memory.search_nodes"),
        ("remove entities", "memory.delete_entities"),
        ("relations between entities", "memory.create_relations"),
        ("commit my changes", "git.git_commit"),
        ("commit history log", "git.git_log"),
        ("new branch", "git.git_create_branch"),
        ("difference of two branches", "git.git_diff"),
        ("open a bug ticket on github", "github.create_issue"),
        ("merge the pull request", "github.merge_pull_request"),
        ("look for code on github", "github.search_code"),
        ("get a web page as markdown", "fetch.fetch"),
        ("what time is it now", "time.get_current_time"),
        ("convert between timezones", "time.convert_time"),
        ("post to slack channel", "slack.post_message"),
        ("send an email", "mail.sendEmail"),
        ("screenshot", "browser.take_screenshot"),
        ("run a SELECT on the database", "sqlite.read_query"),
        ("which tables are there", "sqlite.list_tables"),
        ("weather tomorrow", "weather.forecast"),
        ("calendar", "project_cli"),
        ("accept the invitation to the meeting", "project_cli"),
        ("my contacts", "project_cli"),
        ("读取文件", "fs.read_text_file"),
        ("移动文件", "fs.move_file"),
        ("新建文件夹", "fs.create_directory"),
        ("搜索文件", "fs.search_files"),
        ("提交代码", "git.git_commit"),
        ("发送邮件", "mail.sendEmail"),
        ("查询天气", "weather.forecast"),
        ("截图", "browser.take_screenshot"),
        ("日历", "project_cli"),
        ("查看我的日程", "project_cli"),
        ("客户列表", "crm.客户列表"),
        ("在知识库检索", "kb.问答"),
        ("删除实体", "memory.delete_entities"),
    ];
    let index = ToolIndex::new(&tools());
    let wrong: Vec<String> = cases
        .iter()
        .map(|(query, expected)| (query, expected, index.search(query, 3, |_| true)))
        .filter(|(_, expected, found)| found.first().map(String::as_str) != Some(**expected))
        .map(|(query, expected, found)| format!("{query}: {expected} not first of {found:?}"))
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn results_are_limited_and_unknown_words_find_nothing() {
    assert_eq!(search("file", 3).len(), 3);
    assert_eq!(search("file", 0), Vec::<String>::new());
    assert_eq!(search("quaternion", 5), Vec::<String>::new());
    assert_eq!(search("", 5), Vec::<String>::new());
    assert_eq!(search("the of and", 5), Vec::<String>::new());
}

#[test]
fn a_tool_that_is_not_allowed_is_not_found_and_changes_nothing() {
    let everything = tools();
    let index = ToolIndex::new(&everything);
    let found = index.search("create a file", 10, |name| name.starts_with("fs."));
    assert!(!found.is_empty());
    assert!(found.iter().all(|name| name.starts_with("fs.")), "{found:?}");
    let without = index.search("mail.sendEmail", 5, |name| name != "mail.sendEmail");
    assert!(!without.contains(&"mail.sendEmail".to_owned()));
    let rest: Vec<Tool> =
        everything.iter().filter(|tool| tool.name.starts_with("fs.")).cloned().collect();
    for query in ["create a file", "directory", "移动"] {
        let found = index.search(query, 10, |name| name.starts_with("fs."));
        let alone = ToolIndex::new(&rest).search(query, 10, |_| true);
        assert_eq!(found, alone, "{query}");
    }
}

#[test]
fn the_ranking_does_not_depend_on_the_order_of_the_tools() {
    let mut backward = tools();
    backward.reverse();
    let (index, other) = (ToolIndex::new(&tools()), ToolIndex::new(&backward));
    for query in ["file", "list", "create", "文件", "get directory"] {
        assert_eq!(index.search(query, 20, |_| true), other.search(query, 20, |_| true), "{query}");
    }
    let twins = [tool("b.same", "equal words", &[]), tool("a.same", "equal words", &[])];
    assert_eq!(ToolIndex::new(&twins).search("equal", 5, |_| true), ["a.same", "b.same"]);
}

fn vectors(query: &[f32], tools: &[(&str, [f32; 2])]) -> Vectors {
    let tools = tools.iter().map(|(name, vector)| ((*name).to_owned(), Arc::from(&vector[..])));
    Vectors { query: query.into(), tools: tools.collect() }
}

#[test]
fn vectors_find_tools_that_share_no_word_with_the_query() {
    let index = ToolIndex::new(&tools());
    let known = [("weather.forecast", [1.0, 0.0]), ("maps.directions", [0.0, 1.0])];
    let query = "will I need an umbrella";
    assert_eq!(index.search(query, 3, |_| true), Vec::<String>::new());
    let found = index.search_near(query, &vectors(&[0.9, 0.1], &known), 2, |_| true);
    assert_eq!(found, ["weather.forecast", "maps.directions"]);
    // A tool that is not allowed is not found, and vectors of another length are ignored.
    let one = index.search_near(query, &vectors(&[0.9, 0.1], &known), 2, |name| name != found[0]);
    assert_eq!(one, ["maps.directions"]);
    let foreign = index.search_near("umbrella", &vectors(&[0.9], &known), 2, |_| true);
    assert_eq!(foreign, Vec::<String>::new());
}

#[test]
fn the_last_digits_of_a_vector_do_not_change_the_order() {
    let index = ToolIndex::new(&tools());
    let known = [("weather.forecast", [0.6, 0.8]), ("maps.directions", [0.600_000_1, 0.799_999_9])];
    for query in [[0.9, 0.1], [0.900_000_1, 0.1], [0.9, 0.100_000_1]] {
        let found = index.search_near("umbrella", &vectors(&query, &known), 2, |_| true);
        assert_eq!(found, ["maps.directions", "weather.forecast"]);
    }
}

/// Tools that only their parameters tell apart, and queries for the first ones.
fn opaque() -> (Vec<Tool>, Vec<(String, String)>) {
    let things =
        ["invoice", "shipment", "passport", "battery", "recipe", "tenant", "vaccine", "glacier"];
    let traits =
        ["overdue", "refrigerated", "diplomatic", "recycled", "vegan", "commercial", "seasonal"];
    let (mut tools, mut queries) = (Vec::new(), Vec::new());
    for (n, (thing, quality)) in things
        .iter()
        .flat_map(|thing| traits.iter().map(move |quality| (*thing, *quality)))
        .enumerate()
    {
        let mut tool =
            tool(&format!("svc.operation_{n:03}"), "Executes an operation of the service", &[]);
        tool.input_schema = json!({"type": "object", "properties": {
            "arg1": {"type": "string", "description": format!("Identifier of the {quality} {thing}")},
            "arg2": {"type": "integer", "description": "Maximum number of entries in the response"}}});
        queries.push((format!("find the {quality} {thing} for my colleague"), tool.name.clone()));
        tools.push(tool);
    }
    for n in 0..40 {
        let text = format!("Find a colleague. Returns the entry for desk {n} in the service");
        tools.push(tool(&format!("office.find_colleague_{n}"), &text, &["colleague", "desk"]));
    }
    (tools, queries)
}

/// BM25 over all text of a tool, without fields.
fn plain(tools: &[Tool], query: &str) -> Vec<String> {
    let texts: Vec<Vec<String>> = tools
        .iter()
        .map(|tool| words(&format!("{} {} {}", tool.name, tool.description, tool.input_schema)))
        .collect();
    let mean = texts.iter().map(Vec::len).sum::<usize>() as f64 / texts.len() as f64;
    let score = |text: &Vec<String>| -> f64 {
        let of = |word: &String| {
            let often = text.iter().filter(|one| *one == word).count() as f64;
            let holding = texts.iter().filter(|text| text.contains(word)).count() as f64;
            let rarity = (1.0 + (texts.len() as f64 - holding + 0.5) / (holding + 0.5)).ln();
            rarity * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * text.len() as f64 / mean))
        };
        words(query).iter().map(of).sum()
    };
    let mut ranked: Vec<(f64, &str)> =
        texts.iter().zip(tools).map(|(text, tool)| (score(text), tool.name.as_str())).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    ranked.into_iter().take(5).map(|(_, name)| name.to_owned()).collect()
}

#[test]
fn what_only_parameters_say_is_found_as_well_as_by_plain_bm25() {
    let (tools, queries) = opaque();
    let index = ToolIndex::new(&tools);
    let recall = |search: &dyn Fn(&str) -> Vec<String>| {
        let found = queries.iter().filter(|(query, expected)| search(query).contains(expected));
        found.count() as f64 / queries.len() as f64
    };
    let own = recall(&|query| index.search(query, 5, |_| true));
    let bm25 = recall(&|query| plain(&tools, query));
    assert!(own >= bm25 && own > 0.9, "{own} against {bm25}");
}

#[test]
fn a_synonym_counts_less_where_tools_have_the_word_itself() {
    let tools = [
        tool("rows.remove", "Remove rows", &["id"]),
        tool("rows.tidy", "Delete old rows", &["id"]),
    ];
    let first = |tools: &[Tool]| ToolIndex::new(tools).search("delete", 1, |_| true);
    assert_eq!(first(&tools), ["rows.tidy"]);
    // It counts fully where nobody uses the word.
    assert_eq!(first(&tools[..1]), ["rows.remove"]);
}
