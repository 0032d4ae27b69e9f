//! Binding resolution, rule by rule of DESIGN §2.

use super::*;
use crate::settings::GrantPolicy;
use greenroom_protocol::{Object, Replaces, RunnerId};
use greenroom_store::types::{OnInterrupt, Queue};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

fn agent(name: &str, events: &[&str]) -> Agent {
    Agent {
        name: name.to_owned(),
        built_in: false,
        runner: RunnerId::parse("plugin:a/b/c").unwrap(),
        events: events.iter().map(|&event| event.to_owned()).collect(),
        scope: Scope::default(),
        filters: BTreeMap::new(),
        queue: Queue::Serial,
        commands: Vec::new(),
        replaces: Replaces::default(),
        deadline: Duration::from_secs(1),
        on_interrupt: OnInterrupt::Fail,
        delivery: None,
        config: Object::new(),
        grant: GrantPolicy::default(),
        budget: crate::Budget::default(),
    }
}

fn event(value: Value) -> NewEvent {
    serde_json::from_value(value).unwrap()
}

fn taken(agents: &[Agent], event: &NewEvent) -> String {
    match resolve(agents, event, "default") {
        Match::One(agent, _) => agent.name.clone(),
        Match::None => "none".to_owned(),
        Match::Unknown => "unknown".to_owned(),
        Match::Tie(names) => format!("tie {}", names.join(" ")),
    }
}

#[test]
fn a_named_agent_is_taken_as_named_even_if_it_listens_to_nothing() {
    let agents = [agent("a", &["*"]), agent("b", &[])];
    let named = |name: &str| event(json!({"event_type": "x", "agent": name}));
    assert_eq!(taken(&agents, &named("b")), "b");
    assert_eq!(taken(&agents, &named("nobody")), "unknown");
}

#[test]
fn a_slash_command_goes_to_its_agent_and_other_messages_do_not() {
    let message = |text: &str| {
        event(
            json!({"event_type": "message.received", "conversation_id": "c1", "input": {"text": text}}),
        )
    };
    let with = |name: &str, commands: &[&str]| Agent {
        commands: commands.iter().map(|&command| command.to_owned()).collect(),
        ..agent(name, &["message.received"])
    };
    let scope = Scope { conversation: Some("c1".into()), ..Scope::default() };
    let here = Agent { scope, ..agent("here", &["message.received"]) };
    let agents = [here, with("weather", &["weather", "w"]), with("any", &["*"])];
    for (text, expected) in [
        ("/weather Paris", "weather"),
        (" /w", "weather"),
        ("/weathers", "any"),
        ("/", "here"),
        ("weather", "here"),
        ("tell me /weather", "here"),
    ] {
        assert_eq!(taken(&agents, &message(text)), expected, "{text}");
    }
    let Match::One(_, bound) = resolve(&agents, &message("/w"), "default") else { panic!() };
    assert_eq!(bound.reason, Reason::SlashCommand);
    assert_eq!(ties(&agents), []);
    let twins = [with("one", &["a", "b"]), with("two", &["b", "c"]), with("three", &["d"])];
    assert_eq!(ties(&twins), [("one", "two")]);
    let only = with("only", &["a"]);
    let why = &explain(std::slice::from_ref(&only), &message("hello"), "default")[0].why;
    assert_eq!(*why, [Why::Command]);
}

#[test]
fn a_listed_slash_command_is_taken_from_the_named_agent() {
    let message = |agent: &str, text: &str| {
        event(
            json!({"event_type": "message.received", "agent": agent, "conversation_id": "c1", "input": {"text": text}}),
        )
    };
    let with = |name: &str, commands: &[&str]| Agent {
        commands: commands.iter().map(|&command| command.to_owned()).collect(),
        ..agent(name, &["message.received"])
    };
    let elsewhere = Scope { conversation: Some("c2".into()), ..Scope::default() };
    let agents = [
        agent("helper", &[]),
        with("weather", &["weather", "w"]),
        with("any", &["*"]),
        Agent { scope: elsewhere, ..with("there", &["there"]) },
        Agent { events: Vec::new(), ..with("hidden", &["hidden"]) },
    ];
    for (named, text, expected) in [
        ("helper", "/weather Paris", "weather"),
        ("helper", " /w", "weather"),
        // `*` is every command that no other agent names, and here one is named.
        ("helper", "/other", "helper"),
        ("helper", "weather", "helper"),
        ("helper", "tell me /weather", "helper"),
        // Not in this conversation, and by name only.
        ("helper", "/there", "helper"),
        ("helper", "/hidden", "helper"),
        ("any", "/weather", "any"),
        ("weather", "/w", "weather"),
        ("weather", "hello", "weather"),
        ("nobody", "/weather", "unknown"),
    ] {
        assert_eq!(taken(&agents, &message(named, text)), expected, "{named} {text}");
    }
    let sent = message("helper", "/w");
    let Match::One(_, bound) = resolve(&agents, &sent, "default") else { panic!() };
    assert_eq!((bound.reason, bound.beside), (Reason::SlashCommand, vec!["helper".to_owned()]));
    let why: Vec<(&str, bool, Why)> = explain(&agents, &sent, "default")
        .into_iter()
        .map(|mut it| (it.agent.name.as_str(), it.chosen, it.why.remove(0)))
        .collect();
    let not_named = |name| (name, false, Why::NotNamed);
    assert_eq!(
        why,
        [
            ("weather", true, Why::Ok),
            ("helper", false, Why::LessNarrow),
            not_named("any"),
            not_named("there"),
            not_named("hidden")
        ]
    );
    // Only messages of users, and a replay goes where it is sent.
    let mut timer = sent.clone();
    timer.event_type = "timer.fired".to_owned();
    assert_eq!(taken(&agents, &timer), "helper");
    let mut replay = sent;
    replay.metadata.insert(REPLAY_OF.to_owned(), "e1".into());
    assert_eq!(taken(&agents, &replay), "helper");
}

#[test]
fn the_narrowest_scope_wins() {
    let mut agents = vec![agent("any", &["*"])];
    let anywhere = Scope::default;
    let scopes = [
        ("workspace", Scope { workspace: Some("default".into()), ..anywhere() }),
        ("bot", Scope { bot: Some("b1".into()), ..anywhere() }),
        ("conversation", Scope { conversation: Some("c1".into()), ..anywhere() }),
        ("actor", Scope { actor: Some("u1".into()), ..anywhere() }),
    ];
    let message = event(json!({
        "event_type": "message.received", "bot_id": "b1", "conversation_id": "c1",
        "actor": {"actor_type": "user", "actor_id": "u1"}
    }));
    for (name, scope) in scopes {
        let mut next = agent(name, &["message.received"]);
        next.scope = scope;
        agents.push(next);
        assert_eq!(taken(&agents, &message), name);
    }
    let elsewhere = event(json!({"event_type": "message.received", "conversation_id": "c2"}));
    assert_eq!(taken(&agents, &elsewhere), "workspace");
}

#[test]
fn filters_narrow_and_must_all_pass() {
    let mut filtered = agent("issues", &["*"]);
    filtered.filters.insert("data.kind".into(), vec![json!("issue"), json!("task")]);
    let agents = [agent("any", &["*"]), filtered];
    let with = |kind: &str| event(json!({"event_type": "x", "data": {"kind": kind}}));
    assert_eq!(taken(&agents, &with("issue")), "issues");
    assert_eq!(taken(&agents, &with("task")), "issues");
    assert_eq!(taken(&agents, &with("other")), "any");
    assert_eq!(taken(&agents, &event(json!({"event_type": "x"}))), "any");
}

#[test]
fn an_exact_type_is_narrower_than_a_pattern() {
    let agents = [agent("all", &["*"]), agent("exact", &["message.received"])];
    assert_eq!(taken(&agents, &event(json!({"event_type": "message.received"}))), "exact");
    assert_eq!(taken(&agents, &event(json!({"event_type": "message.edited"}))), "all");
}

#[test]
fn a_tie_names_both() {
    let agents = [agent("b", &["message.*"]), agent("a", &["*.received"])];
    assert_eq!(taken(&agents, &event(json!({"event_type": "message.received"}))), "tie a b");
}

#[test]
fn built_in_agents_yield() {
    let mut built_in = agent("assistant", &["message.received"]);
    built_in.built_in = true;
    let agents = [built_in, agent("mine", &["*"])];
    assert_eq!(taken(&agents, &event(json!({"event_type": "message.received"}))), "mine");
    assert_eq!(taken(&agents[..1], &event(json!({"event_type": "message.received"}))), "assistant");
    assert_eq!(taken(&agents[..1], &event(json!({"event_type": "other"}))), "none");
}

#[test]
fn ties_are_detected_in_the_configuration() {
    let same = [agent("a", &["message.received"]), agent("b", &["message.received"])];
    assert_eq!(ties(&same), [("a", "b")]);
    let apart = [agent("a", &["message.received"]), agent("b", &["message.edited"])];
    assert!(ties(&apart).is_empty());
    let narrower = [agent("a", &["message.received"]), agent("b", &["message.*"])];
    assert!(ties(&narrower).is_empty());
}

#[test]
fn patterns_fit_as_people_expect() {
    for (pattern, text, expected) in [
        ("*", "anything", true),
        ("message.*", "message.received", true),
        ("message.*", "messages", false),
        ("*.received", "message.received", true),
        ("a*b*c", "axxbyyc", true),
        ("a*b*c", "axxc", false),
        ("a*a", "a", false),
        ("exact", "exact", true),
        ("exact", "exactly", false),
    ] {
        assert_eq!(fits(pattern, text), expected, "{pattern} ~ {text}");
    }
}

#[test]
fn the_deciding_rule_is_recorded_with_the_agents_passed_over() {
    let message = event(json!({"event_type": "message.received", "bot_id": "b1", "agent": null,
        "input": {"text": "hi"}}));
    let own = agent("own", &["message.*"]);
    let built_in = Agent { built_in: true, ..agent("built-in", &["message.received"]) };
    let exact = agent("exact", &["message.received"]);
    let scope = Scope { bot: Some("b1".into()), ..Scope::default() };
    let scoped = Agent { scope, ..agent("scoped", &["*"]) };
    let filters = BTreeMap::from([("input.text".to_owned(), vec![json!("hi")])]);
    let filtered = Agent { filters, ..agent("filtered", &["*"]) };
    let cases: [(&[&Agent], Reason, &[&str]); 6] = [
        (&[&own], Reason::OnlyMatch, &[]),
        (&[&built_in, &own], Reason::BeforeBuiltIn, &["built-in"]),
        (&[&own, &exact, &built_in], Reason::ExactEventType, &["own", "built-in"]),
        (&[&own, &filtered], Reason::MoreFilters, &["own"]),
        (&[&filtered, &scoped], Reason::NarrowerScope, &["filtered"]),
        (&[&exact, &filtered, &scoped], Reason::NarrowerScope, &["filtered", "exact"]),
    ];
    for (agents, reason, beside) in cases {
        let agents: Vec<Agent> = agents.iter().map(|&agent| agent.clone()).collect();
        let Match::One(_, bound) = resolve(&agents, &message, "default") else {
            panic!("no agent was chosen: {reason:?}")
        };
        assert_eq!(
            bound,
            Bound { beside: beside.iter().map(|&name| name.into()).collect(), ..Bound::by(reason) }
        );
    }
}

#[test]
fn every_agent_has_a_reason_why_it_matches_or_not() {
    let scope = Scope { conversation: Some("c9".into()), ..Scope::default() };
    let filters = BTreeMap::from([("input.text".to_owned(), vec![json!("bye")])]);
    let agents = [
        agent("wide", &["*"]),
        agent("silent", &[]),
        Agent { scope, filters, ..agent("elsewhere", &["other.*"]) },
        agent("exact", &["message.received"]),
    ];
    let message = event(json!({"event_type": "message.received", "input": {"text": "hi"}}));
    let explained = |message: &NewEvent| -> Value {
        let verdicts = explain(&agents, message, "default");
        verdicts.iter().map(|it| json!([it.agent.name, it.matches, it.chosen, it.why])).collect()
    };
    let expected = json!([
        ["exact", true, true, ["ok"]],
        ["wide", true, false, ["less_narrow"]],
        ["silent", false, false, ["only_when_named"]],
        ["elsewhere", false, false, ["event_type", "scope.conversation", "filter:input.text"]],
    ]);
    assert_eq!(explained(&message), expected);
    let named = NewEvent { agent: Some("silent".to_owned()), ..message };
    let expected = json!([
        ["silent", true, true, ["named"]],
        ["wide", false, false, ["not_named"]],
        ["elsewhere", false, false, ["not_named"]],
        ["exact", false, false, ["not_named"]],
    ]);
    assert_eq!(explained(&named), expected);
}
