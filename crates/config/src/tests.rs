//! What a user reads for a mistake, and what a right file becomes.

mod entries;
mod front;
mod mistakes;
mod models;
mod secrets;

use super::*;
use proptest::prelude::*;
use serde_json::json;
use std::time::Duration;

const EXAMPLE: &str = include_str!("../../../greenroom.example.toml");

fn read(text: &str) -> Result<Loaded, Invalid> {
    let env = |name: &str| match name {
        "EMPTY" => Some(String::new()),
        name if name.starts_with("MISSING") => None,
        name => Some(format!("the-long-value-of-{name}")),
    };
    let read = |path: &Path| match path.ends_with("missing") {
        true => Err(io::Error::new(io::ErrorKind::NotFound, "no such file")),
        false => Ok("the-long-value-of-a-file\n".to_owned()),
    };
    let known = Known {
        providers: &["openai", "anthropic", "scripted"],
        actions: &["message.send", "message.edit", "message.delete", "message.react"],
        methods: ["calendar.read", "calendar.add", "contacts.find"].map(str::to_owned).into(),
        is_route: |name| name == "v1",
    };
    let around =
        Surroundings { dir: Path::new("/srv/greenroom"), env: &env, read: &read, known: &known };
    parse(Path::new("greenroom.toml"), text, &around)
}

fn mistakes(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

fn secret(text: &str) -> Secret {
    Secret::new(text).unwrap()
}

#[test]
fn an_empty_file_is_the_default() {
    assert_eq!(read("").unwrap().config, Config::default());
}

#[test]
fn the_example_file_loads_and_shows_the_defaults() {
    let config = read(EXAMPLE).unwrap().config;
    assert_eq!(config.limits, Limits::default());
    assert_eq!(config.retention, Retention::default());
    assert_eq!(config.approvals, Approvals::default());
    assert_eq!(config.server.listen, Server::default().listen);
    let triage = &config.agents["triage"];
    let actions = BTreeMap::from([("message.send".to_owned(), Approval::Ask)]);
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let grant = GrantPolicy {
        models: texts(&["main"]),
        tools: texts(&["files.read_file"]),
        skills: texts(&["booking"]),
        modules: texts(&["calendar.read", "weather.*"]),
        actions,
        ..GrantPolicy::default()
    };
    assert_eq!(triage.grant, grant);
    for limit in Limits::ALL {
        assert!(EXAMPLE.contains(&format!("\n{} = ", limit.name)), "no {}", limit.name);
    }
}

#[test]
fn a_runner_is_read_with_paths_relative_to_the_file() {
    let config = read(EXAMPLE).unwrap().config;
    let triage = Runner {
        launch: Launch::Process(Process {
            program: "python3".to_owned(),
            args: vec!["run.py".to_owned()],
            dir: PathBuf::from("/srv/greenroom/runners/triage"),
            owns_dir: true,
            env: BTreeMap::from([
                ("LANG".to_owned(), secret("C.UTF-8")),
                ("ISSUES_API_KEY".to_owned(), secret("the-long-value-of-ISSUES_API_KEY")),
            ]),
            sandbox: Sandbox::On,
            paths: vec![PathBuf::from("/srv/greenroom/shared-files")],
            configuration: PathBuf::from("/srv/greenroom/greenroom.toml"),
            processes: 64,
            threads: 2048,
            memory_mb: 2048,
            disk_mb: 10_240,
            files: 500_000,
            network: Some(NetworkAccess::Only(vec![
                Destination {
                    host: DestinationHost::Name("api.example.com".to_owned()),
                    port: 443,
                },
                Destination { host: DestinationHost::Below("example.org".to_owned()), port: 443 },
            ])),
        }),
        plugin: Some("acme/triage".to_owned()),
        wire: Wire::Native,
        config: BTreeMap::new(),
        listens: Vec::new(),
        acp: None,
    };
    let far_away = Runner {
        launch: Launch::Connect { token: secret("the-long-value-of-FAR_AWAY_TOKEN") },
        plugin: None,
        wire: Wire::Native,
        config: BTreeMap::new(),
        listens: Vec::new(),
        acp: None,
    };
    assert_eq!(
        config.runners,
        BTreeMap::from([("triage".to_owned(), triage), ("far-away".to_owned(), far_away)])
    );
}

#[test]
fn an_agent_is_read_whole() {
    let config = read(EXAMPLE).unwrap().config;
    let text = |text: &str| Some(text.to_owned());
    let triage = Agent {
        events: vec!["message.received".to_owned(), "issue.*".to_owned()],
        scope: Scope {
            workspace: text("default"),
            bot: text("helpdesk"),
            conversation: text("c-42"),
            actor: text("u-7"),
        },
        filters: BTreeMap::from([
            ("data.severity".to_owned(), vec![json!("high"), json!("critical")]),
            ("metadata.bot".to_owned(), vec![json!(false)]),
        ]),
        deadline: Some(Duration::from_secs(120)),
        delivery: text("helpdesk"),
        config: json!({ "tone": "friendly" }).as_object().unwrap().clone(),
        grant: config.agents["triage"].grant.clone(),
        budget: Budget { run: Some(500_000), day: Some(10_000_000) },
        ..Agent::new("plugin:acme/triage/default".to_owned().try_into().unwrap())
    };
    assert_eq!(config.agents, BTreeMap::from([("triage".to_owned(), triage)]));
}

#[test]
fn surfaces_and_tokens_are_read_with_their_secrets() {
    let config = read(EXAMPLE).unwrap().config;
    let helpdesk = Surface::Webhook(Webhook {
        url: "https://helpdesk.example.com/greenroom".to_owned(),
        secret: Some(secret("the-long-value-of-HELPDESK_SECRET")),
        allow_private: false,
        idempotent: false,
        timeout: Duration::from_secs(10),
        max_message_size: Some(4000),
        actions: ["message.send".to_owned()].into(),
    });
    assert_eq!(config.surfaces, BTreeMap::from([("helpdesk".to_owned(), helpdesk)]));
    let agents = Some(vec!["triage".to_owned()]);
    let conversations =
        Conversations { limited: true, named: vec!["c-42".to_owned(), "web-*".to_owned()] };
    let role = Role::Sender { agents, actors: Actors::Own, conversations };
    let website = Token { role, token: secret("the-long-value-of-a-file") };
    assert_eq!(config.tokens, BTreeMap::from([("website".to_owned(), website)]));
}

#[test]
fn a_command_line_is_split_and_its_program_found_beside_the_runner() {
    let text = "[runners.a]\ncommand = \"./run 'two words'\"\ndir = \"a\"";
    let config = read(text).unwrap().config;
    let Launch::Process(process) = &config.runners["a"].launch else { panic!("not a process") };
    assert_eq!(process.program, "/srv/greenroom/a/./run");
    assert_eq!(process.args, ["two words"]);
}

#[test]
fn a_built_in_agent_may_be_replaced_and_named_by_a_token() {
    let text = "[agents.echo]\nrunner = \"plugin:a/b/c\"\n\n[tokens.t]\nrole = \"sender\"\n\
                agents = [\"echo\", \"assistant\"]\ntoken = { env = \"T\" }";
    assert!(read(text).unwrap().config.agents.contains_key("echo"));
}

#[test]
fn a_store_address_may_hold_a_password_and_is_never_shown() {
    let plain = read("[store]\nurl = \"postgres://u:hunter2@db/g\"").unwrap().config;
    assert!(matches!(plain.store.url, Some(StoreUrl::Postgres(_))));
    assert!(!format!("{plain:?}").contains("hunter2"));
    assert!(
        read("[store]\nurl = { env = \"X\" }").unwrap_err().to_string().contains("sqlite:PATH")
    );
}

#[test]
fn later_checks_can_point_into_the_file() {
    let loaded = read(EXAMPLE).unwrap();
    let line =
        EXAMPLE.lines().position(|line| line.starts_with("command = [\"python3\"")).unwrap() + 1;
    assert_eq!(loaded.line_of(&["runners", "triage", "command"]), Some(line));
    assert_eq!(loaded.line_of(&["runners", "nobody"]), None);
    let invalid = loaded.invalid_at(&["agents", "triage"], "a tie".to_owned(), None);
    assert!(invalid.to_string().contains("| [agents.triage]"), "{invalid}");
}

#[test]
fn deep_nesting_is_refused_or_read_but_never_overflows() {
    let deep = "a.".repeat(200_000);
    for text in [
        format!("[agents.a.config]\n{deep}a = 1"),
        format!("[agents.a.config.{deep}a]"),
        format!("[agents.a.config]\nx = {}", "[".repeat(200_000)),
        format!("[agents.a.config]\nx = {}", "{ a = ".repeat(200_000)),
    ] {
        let _ = read(&text).map_err(|invalid| invalid.to_string());
    }
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "\\PC*|([a-z\\[\\]{}=\"'.\\\\ \n#0-9é中]|agents|runners|token)*") {
        let _ = read(&text).map_err(|invalid| invalid.to_string());
    }

    #[test]
    fn a_damaged_example_never_panics(at in 0..EXAMPLE.len(), insert in "[\\[\\]{}=\"'.\\\\ \n中a]{0,3}", cut in 0..40usize) {
        let boundary = |mut at: usize| {
            while !EXAMPLE.is_char_boundary(at) { at -= 1; }
            at
        };
        let (from, to) = (boundary(at), boundary((at + cut).min(EXAMPLE.len())));
        let text = format!("{}{insert}{}", &EXAMPLE[..from], &EXAMPLE[to..]);
        let _ = read(&text).map_err(|invalid| invalid.to_string());
    }
}

#[test]
fn the_settings_of_a_plugin_may_hold_secrets_and_are_for_plugins_only() {
    let plugin = "[runners.bot]\nwire = \"langbot\"\ndir = \"bot\"\ncommand = [\"python3\"]\n";
    let own = "listens = [\"echo\"]\n[runners.bot.config]\nsize = 3\nkey = { env = \"BOT_KEY\" }\n\
               nested = { file = \"a\", more = 1 }\n";
    let config = read(&format!("{plugin}{own}")).unwrap().config;
    let expected = BTreeMap::from([
        ("key".to_owned(), Setting::Secret(secret("the-long-value-of-BOT_KEY"))),
        ("nested".to_owned(), Setting::Plain(json!({"file": "a", "more": 1}))),
        ("size".to_owned(), Setting::Plain(3.into())),
    ]);
    assert_eq!(config.runners["bot"].config, expected);
    assert_eq!(config.runners["bot"].listens, ["echo"]);
    let native = "[runners.bot]\ncommand = [\"python3\"]\nconfig = { size = 3 }\n";
    let problem = mistakes(native);
    assert!(
        problem.contains("`runners.bot.config` is only for plugins of the wire `langbot`"),
        "{problem}"
    );
}
