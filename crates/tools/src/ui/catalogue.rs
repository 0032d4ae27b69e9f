//! The basic catalogue of A2UI v0.9: its components and their properties.
//!
//! Invariant: stricter than the renderers, which ignore what they do not know: an unknown component, property or
//! value, a missing or circular child and a second surface are refused. Client functions are not used.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Most components of one surface.
const COMPONENTS_MAX: usize = 500;

/// Why a user interface is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUi {
    #[error("the operations are not those of one surface: {0}")]
    Operations(&'static str),
    #[error("the component `{id}` {problem}")]
    Component { id: String, problem: String },
    #[error("there is no component `root`")]
    NoRoot,
}

/// The type of a property.
#[derive(Debug, Clone, Copy)]
enum PropertyType {
    /// A text, or its path in the data model.
    Text,
    Number,
    Boolean,
    Texts,
    Icon,
    Child,
    Children,
    Action,
    OneOf(&'static [&'static str]),
    /// `[{title, child}]`.
    Tabs,
    /// `[{label, value}]`.
    Choices,
    PlainNumber,
    PlainBoolean,
    PlainText,
}

struct Component {
    name: &'static str,
    required: &'static [&'static str],
    expected: &'static [(&'static str, PropertyType)],
}

const JUSTIFY: PropertyType = PropertyType::OneOf(&[
    "start",
    "center",
    "end",
    "spaceAround",
    "spaceBetween",
    "spaceEvenly",
    "stretch",
]);
const ALIGN: PropertyType = PropertyType::OneOf(&["start", "center", "end", "stretch"]);

const CATALOGUE: &[Component] = &[
    Component {
        name: "Text",
        required: &["text"],
        expected: &[
            ("text", PropertyType::Text),
            ("variant", PropertyType::OneOf(&["h1", "h2", "h3", "h4", "h5", "caption", "body"])),
        ],
    },
    Component {
        name: "Image",
        required: &["url"],
        expected: &[
            ("url", PropertyType::Text),
            ("description", PropertyType::Text),
            ("fit", PropertyType::OneOf(&["contain", "cover", "fill", "none", "scaleDown"])),
            (
                "variant",
                PropertyType::OneOf(&[
                    "icon",
                    "avatar",
                    "smallFeature",
                    "mediumFeature",
                    "largeFeature",
                    "header",
                ]),
            ),
        ],
    },
    Component { name: "Icon", required: &["name"], expected: &[("name", PropertyType::Icon)] },
    Component { name: "Video", required: &["url"], expected: &[("url", PropertyType::Text)] },
    Component {
        name: "AudioPlayer",
        required: &["url"],
        expected: &[("url", PropertyType::Text), ("description", PropertyType::Text)],
    },
    Component {
        name: "Row",
        required: &["children"],
        expected: &[("children", PropertyType::Children), ("justify", JUSTIFY), ("align", ALIGN)],
    },
    Component {
        name: "Column",
        required: &["children"],
        expected: &[("children", PropertyType::Children), ("justify", JUSTIFY), ("align", ALIGN)],
    },
    Component {
        name: "List",
        required: &["children"],
        expected: &[
            ("children", PropertyType::Children),
            ("direction", PropertyType::OneOf(&["vertical", "horizontal"])),
            ("align", ALIGN),
        ],
    },
    Component { name: "Card", required: &["child"], expected: &[("child", PropertyType::Child)] },
    Component { name: "Tabs", required: &["tabs"], expected: &[("tabs", PropertyType::Tabs)] },
    Component {
        name: "Modal",
        required: &["trigger", "content"],
        expected: &[("trigger", PropertyType::Child), ("content", PropertyType::Child)],
    },
    Component {
        name: "Divider",
        required: &[],
        expected: &[("axis", PropertyType::OneOf(&["horizontal", "vertical"]))],
    },
    Component {
        name: "Button",
        required: &["child", "action"],
        expected: &[
            ("child", PropertyType::Child),
            ("variant", PropertyType::OneOf(&["default", "primary", "borderless"])),
            ("action", PropertyType::Action),
        ],
    },
    Component {
        name: "TextField",
        required: &["label"],
        expected: &[
            ("label", PropertyType::Text),
            ("value", PropertyType::Text),
            ("variant", PropertyType::OneOf(&["longText", "number", "shortText", "obscured"])),
            ("validationRegexp", PropertyType::PlainText),
        ],
    },
    Component {
        name: "CheckBox",
        required: &["label", "value"],
        expected: &[("label", PropertyType::Text), ("value", PropertyType::Boolean)],
    },
    Component {
        name: "ChoicePicker",
        required: &["options", "value"],
        expected: &[
            ("label", PropertyType::Text),
            ("variant", PropertyType::OneOf(&["multipleSelection", "mutuallyExclusive"])),
            ("options", PropertyType::Choices),
            ("value", PropertyType::Texts),
            ("displayStyle", PropertyType::OneOf(&["checkbox", "chips"])),
            ("filterable", PropertyType::PlainBoolean),
        ],
    },
    Component {
        name: "Slider",
        required: &["value", "max"],
        expected: &[
            ("label", PropertyType::Text),
            ("min", PropertyType::PlainNumber),
            ("max", PropertyType::PlainNumber),
            ("value", PropertyType::Number),
        ],
    },
    Component {
        name: "DateTimeInput",
        required: &["value"],
        expected: &[
            ("value", PropertyType::Text),
            ("enableDate", PropertyType::PlainBoolean),
            ("enableTime", PropertyType::PlainBoolean),
            ("min", PropertyType::Text),
            ("max", PropertyType::Text),
            ("label", PropertyType::Text),
        ],
    },
];

const ICONS: &str = "accountCircle add arrowBack arrowForward attachFile calendarToday call camera check close \
    delete download edit event error fastForward favorite favoriteOff folder help home info locationOn lock \
    lockOpen mail menu moreVert moreHoriz notificationsOff notifications pause payment person phone photo play \
    print refresh rewind search send settings share shoppingCart skipNext skipPrevious star starHalf starOff \
    stop upload visibility visibilityOff volumeDown volumeMute volumeOff volumeUp warning";

/// Checks a whole `ui_schema`.
pub fn validate(ui_schema: &Value) -> Result<(), InvalidUi> {
    let wrong = InvalidUi::Operations;
    let operations = ui_schema.get("operations").and_then(Value::as_array);
    let operations = operations.ok_or(wrong("there are none"))?;
    if ui_schema["format"] != "a2ui" || ui_schema["version"] != "v0.9" {
        return Err(wrong("format or version is another"));
    }
    let body = |index: usize, name: &str| {
        let operation = operations.get(index)?.as_object()?;
        (operation.len() == 2 && operation.get("version")? == "v0.9").then_some(())?;
        operation.get(name)?.as_object()
    };
    let create = body(0, "createSurface").ok_or(wrong("the first is not `createSurface`"))?;
    let update =
        body(1, "updateComponents").ok_or(wrong("the second is not `updateComponents`"))?;
    let data = body(2, "updateDataModel").ok_or(wrong("the third is not `updateDataModel`"))?;
    let keys = [
        (create, &["surfaceId", "catalogId"][..]),
        (update, &["surfaceId", "components"]),
        (data, &["surfaceId", "path", "value"]),
    ];
    let exact = |(body, keys): &(&Map<String, Value>, &[&str])| {
        body.len() == keys.len() && keys.iter().all(|key| body.contains_key(*key))
    };
    if operations.len() != 3 || !keys.iter().all(exact) {
        return Err(wrong("there are others, or they hold something else"));
    }
    let surface = create["surfaceId"].as_str().filter(|id| !id.is_empty());
    let surface = surface.ok_or(wrong("the surface has no id"))?;
    if update["surfaceId"] != surface
        || data["surfaceId"] != surface
        || !create["catalogId"].is_string()
    {
        return Err(wrong("they are of several surfaces, or of no catalogue"));
    }
    let components = update["components"].as_array();
    check_components(components.ok_or(wrong("the components are no list"))?)
}

fn check_components(components: &[Value]) -> Result<(), InvalidUi> {
    if components.len() > COMPONENTS_MAX {
        return Err(InvalidUi::Operations("there are too many components"));
    }
    let mut children: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for value in components {
        let id = value.get("id").and_then(Value::as_str).unwrap_or_default();
        let wrong = |problem: String| InvalidUi::Component { id: id.to_owned(), problem };
        let of = check_component(value).map_err(wrong)?;
        if id.is_empty() || children.insert(id, of).is_some() {
            return Err(wrong("has no id, or that of another".to_owned()));
        }
    }
    if !children.contains_key("root") {
        return Err(InvalidUi::NoRoot);
    }
    let mut path = BTreeSet::new();
    let mut done = BTreeSet::new();
    descend("root", &children, &mut path, &mut done)
}

/// Walks down from a component: every child exists, none contains itself.
fn descend<'a>(
    id: &'a str,
    children: &'a BTreeMap<&str, Vec<String>>,
    path: &mut BTreeSet<&'a str>,
    done: &mut BTreeSet<&'a str>,
) -> Result<(), InvalidUi> {
    let wrong =
        |problem: &str| InvalidUi::Component { id: id.to_owned(), problem: problem.to_owned() };
    let below = children.get(id).ok_or_else(|| wrong("is named as a child but not there"))?;
    if !path.insert(id) {
        return Err(wrong("is its own child"));
    }
    for child in below {
        if !done.contains(child.as_str()) {
            descend(child, children, path, done)?;
        }
    }
    path.remove(id);
    done.insert(id);
    Ok(())
}

/// Checks one component and returns its children.
fn check_component(value: &Value) -> Result<Vec<String>, String> {
    let fields = value.as_object().ok_or("is not an object")?;
    let name = fields.get("component").and_then(Value::as_str).unwrap_or_default();
    let known = CATALOGUE.iter().find(|known| known.name == name);
    let known = known.ok_or_else(|| format!("is a `{name}`, which is not in the catalogue"))?;
    if let Some(missing) = known.required.iter().find(|key| !fields.contains_key(**key)) {
        return Err(format!("lacks `{missing}`"));
    }
    let mut children = Vec::new();
    for (key, value) in fields {
        let fits = match key.as_str() {
            "id" | "component" => value.is_string(),
            "weight" => value.is_number(),
            _ => {
                let expected = known.expected.iter().find(|(name, _)| name == key);
                let (_, expected) =
                    expected.ok_or_else(|| format!("has an unknown property `{key}`"))?;
                fits(*expected, value, &mut children)
            }
        };
        if !fits {
            return Err(format!("has a wrong `{key}`"));
        }
    }
    Ok(children)
}

fn fits(expected: PropertyType, value: &Value, children: &mut Vec<String>) -> bool {
    match expected {
        PropertyType::Text => value.is_string() || is_path(value),
        PropertyType::Number => value.is_number() || is_path(value),
        PropertyType::Boolean => value.is_boolean() || is_path(value),
        PropertyType::Texts => {
            let plain = value.as_array().is_some_and(|list| list.iter().all(Value::is_string));
            plain || is_path(value)
        }
        PropertyType::Icon => {
            value.as_str().is_some_and(|name| ICONS.split_whitespace().any(|icon| icon == name))
        }
        PropertyType::OneOf(names) => value.as_str().is_some_and(|name| names.contains(&name)),
        PropertyType::Child => match value.as_str() {
            Some(id) => {
                children.push(id.to_owned());
                true
            }
            None => false,
        },
        PropertyType::Children => match value {
            Value::Array(ids) => ids.iter().all(|id| fits(PropertyType::Child, id, children)),
            Value::Object(template) => {
                let path = template.get("path").is_some_and(Value::is_string);
                let item = template.get("componentId");
                template.len() == 2
                    && path
                    && item.is_some_and(|id| fits(PropertyType::Child, id, children))
            }
            _ => false,
        },
        PropertyType::Action => is_event(value),
        PropertyType::Tabs => entries(value, |entry| {
            fits(PropertyType::Text, &entry["title"], children)
                && fits(PropertyType::Child, &entry["child"], children)
        }),
        PropertyType::Choices => entries(value, |entry| {
            entry["value"].is_string() && fits(PropertyType::Text, &entry["label"], &mut Vec::new())
        }),
        PropertyType::PlainNumber => value.is_number(),
        PropertyType::PlainBoolean => value.is_boolean(),
        PropertyType::PlainText => value.is_string(),
    }
}

/// A list of objects with two fields each.
fn entries(value: &Value, mut check: impl FnMut(&Value) -> bool) -> bool {
    let list = value.as_array().filter(|list| !list.is_empty());
    list.is_some_and(|list| {
        list.iter()
            .all(|entry| entry.as_object().is_some_and(|fields| fields.len() == 2) && check(entry))
    })
}

fn is_path(value: &Value) -> bool {
    let fields = value.as_object().filter(|fields| fields.len() == 1);
    fields.and_then(|fields| fields.get("path")).is_some_and(Value::is_string)
}

/// An event for the server, with values or paths as its context.
fn is_event(value: &Value) -> bool {
    let only = |value: &Value, key: &str| {
        let fields = value.as_object().filter(|fields| fields.len() == 1)?;
        fields.get(key).cloned()
    };
    let Some(event) = only(value, "event") else { return false };
    let Some(fields) = event.as_object() else { return false };
    let plain = |value: &Value| {
        value.is_string() || value.is_number() || value.is_boolean() || is_path(value)
    };
    fields.keys().all(|key| matches!(key.as_str(), "name" | "context"))
        && fields.get("name").is_some_and(Value::is_string)
        && fields.get("context").is_none_or(|context| {
            context.as_object().is_some_and(|context| context.values().all(plain))
        })
}
