use super::*;
use crate::project_cli::{Call, MethodSet};
use serde_json::json;

const WEATHER: &str = r#"
module = "weather"
description = "Weather of places"
command = ["./weather.py", "--quiet"]
timeout_s = 20

[methods.now]
description = "Weather of a place right now"
risk = "external"
network = true
input_schema = { type = "object", required = ["place"], additionalProperties = false, properties = { place = { type = "string" } } }

[methods.forget]
description = "Forget a place"
risk = "destructive"
command = ["python3", "forget.py"]
timeout_s = 5

[methods.forget.input_schema]
type = "object"
"#;

fn parse(text: &str) -> Result<Manifest, ManifestError> {
    Manifest::parse(text, Path::new("/etc/modules/weather.toml"))
}

fn call(module: &str, method: &str, input: Value) -> Call {
    let input = input.as_object().unwrap().clone();
    Call { module: module.to_owned(), method: method.to_owned(), input }
}

#[test]
fn a_manifest_is_read() {
    let manifest = parse(WEATHER).unwrap();
    assert_eq!(manifest.module, "weather");
    let now = &manifest.methods["now"];
    assert_eq!(now.name(), "weather.now");
    assert_eq!(now.command, ["/etc/modules/./weather.py", "--quiet"]);
    assert_eq!(
        (now.risk, now.timeout, &now.network),
        (Risk::External, Duration::from_secs(20), &NetworkAccess::All)
    );
    assert_eq!(now.dir, Path::new("/etc/modules"));
    let forget = &manifest.methods["forget"];
    assert_eq!(forget.command, ["python3", "forget.py"]);
    assert_eq!((forget.timeout, &forget.network), (Duration::from_secs(5), &NetworkAccess::None));
}

#[test]
fn mistakes_in_a_manifest_are_named() {
    let with = |from: &str, to: &str| {
        assert!(WEATHER.contains(from), "{from}");
        parse(&WEATHER.replace(from, to)).unwrap_err().to_string()
    };
    let cases = [
        (with("\"weather\"", "\"calendar\""), "there is a built-in module `calendar`"),
        (with("\"weather\"", "\"Weather!\""), "`Weather!` is not a name"),
        (with("methods.now", "methods.\"a.b\""), "`a.b` is not a name"),
        (with("timeout_s = 20", "timeout = 20"), "unknown field `timeout`"),
        (with("timeout_s = 20", "timeout_s = 0"), "the timeout of `weather.now` is not between"),
        (with("\"external\"", "\"harmless\""), "unknown variant `harmless`"),
        (
            with("type = \"string\"", "\"$ref\" = \"https://example.com/s.json\""),
            "refers to `https://example.com/s.json`, which is outside of it",
        ),
        (
            with("type = \"string\"", "type = \"text\""),
            "the schema of `weather.now` is refused: the schema is not valid",
        ),
        (
            with(
                "[methods.forget.input_schema]\ntype = \"object\"",
                "[methods.forget.input_schema]",
            ),
            "does not say `type = \"object\"`",
        ),
        (with("[\"./weather.py\", \"--quiet\"]", "[]"), "`weather.now` has no command"),
        (with("\"Forget a place\"", "\" \""), "the description of `weather.forget` is empty"),
        (with("description = \"Forget a place\"", ""), "missing field `description`"),
    ];
    for (error, expected) in cases {
        assert!(error.starts_with("`/etc/modules/weather.toml`"), "{error}");
        assert!(error.contains(expected), "{error}\n{expected}");
    }
    let unknown_key = with("timeout_s = 20", "timeout = 20");
    assert!(unknown_key.contains("line 5"), "{unknown_key}");
    let head = WEATHER.split("[methods").next().unwrap();
    assert!(parse(head).unwrap_err().to_string().ends_with("the module has no methods"));
    let missing = Manifest::load(Path::new("/no/such.toml")).unwrap_err();
    assert_eq!(missing.to_string(), "cannot read `/no/such.toml`");
}

#[test]
fn two_modules_of_one_name_are_an_error_that_names_both() {
    let other = Manifest::parse(WEATHER, Path::new("/opt/w.toml")).unwrap();
    let clash = Modules::new(vec![parse(WEATHER).unwrap(), other]).unwrap_err();
    assert_eq!(
        clash.to_string(),
        "there are two modules `weather`: in `/etc/modules/weather.toml` and in `/opt/w.toml`"
    );
}

#[test]
fn a_call_is_resolved_when_it_is_allowed_and_fits() {
    let modules = Modules::new(vec![parse(WEATHER).unwrap()]).unwrap();
    let allowed = MethodSet::from_list("weather.now,calendar.read");
    let resolve = |module: &str, method: &str, input: Value| {
        modules.resolve(&call(module, method, input), &allowed).map(|target| target.risk())
    };
    assert_eq!(resolve("weather", "now", json!({"place": "Bern"})), Ok(Risk::External));
    let event = json!({"mode": "event", "event_id": "e1"});
    assert_eq!(resolve("calendar", "read", event), Ok(Risk::Read));
    let built_in = resolve("calendar", "read", json!({"mode": "week"})).unwrap_err();
    assert_eq!(built_in.code, "INVALID_ACTION_INPUT");
    let refused = resolve("weather", "forget", json!({})).unwrap_err();
    assert_eq!(refused.code, "METHOD_NOT_ALLOWED");
    assert_eq!(refused.message, "`weather.forget` may not be used here");
    let unknown = resolve("wether", "now", json!({})).unwrap_err();
    assert_eq!(unknown.details["close_matches"], json!(["weather.now"]));
    let misfit = resolve("weather", "now", json!({"plaec": "Bern"})).unwrap_err();
    assert_eq!(misfit.code, "INVALID_ACTION_INPUT");
    assert_eq!(
        misfit.message,
        "weather.now input does not match method schema: `plaec`: is not a known field; `place`: is required"
    );
    assert_eq!(misfit.details["input_schema"]["required"], json!(["place"]));
    assert_eq!(misfit.details["module"], "weather");
}

#[test]
fn an_error_names_the_line_and_never_quotes_it() {
    let secret = "aws_secret_access_key wJalrXUtnFEMI\n";
    let error = parse(&format!("# a comment\n{secret}")).unwrap_err().to_string();
    assert!(
        error.starts_with("`/etc/modules/weather.toml` cannot be understood: line 2: "),
        "{error}"
    );
    assert!(!error.contains("wJalrXUtnFEMI") && !error.contains('\n'), "{error}");
    let long = format!(
        "module = \"weather\"\ndescription = \"d\"\ntimeout_s = \"{}\"\n",
        "k".repeat(5000)
    );
    assert!(parse(&long).unwrap_err().to_string().len() < 200);
}

#[test]
fn a_manifest_that_is_a_link_out_of_its_folder_is_not_read() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("weather");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(root.path().join("elsewhere"), WEATHER).unwrap();
    std::fs::write(folder.join("here"), WEATHER).unwrap();
    let link = |target: &Path| {
        let link = folder.join("module.toml");
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(target, &link).unwrap();
        Manifest::load(&link)
    };
    assert_eq!(link(Path::new("here")).unwrap().module, "weather");
    let refused = link(&root.path().join("elsewhere")).unwrap_err();
    let source = std::error::Error::source(&refused).unwrap();
    assert_eq!(source.to_string(), "it is a link out of its folder");
}
