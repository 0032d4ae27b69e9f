//! The cost of a schema: how often its parts visit one value, by the depth of that value.
//!
//! Invariant: the figures are an upper bound. Parts that apply to the same value (`allOf`, `$ref`, …) add up, so
//! the cost can be exponential in the length; such schemas are refused before anything is compiled.

use super::BadSchema;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};

/// Most visits of the outermost value.
const VISITS_MAX: u64 = 20_000;
/// Most visits of all values of one call's arguments.
const STEPS_MAX: u64 = 5_000_000;
/// Depth up to which visits are counted; arguments are never nested deeper.
const DEPTH_MAX: usize = 100;
/// Most parts of a schema.
const PARTS_MAX: usize = 20_000;
/// Most pairs of parts that visit the same value.
const GROUPS_MAX: usize = 500_000;

/// Visits of one value at each depth.
#[derive(Debug)]
pub(super) struct Weight {
    visits: Vec<u64>,
    /// Below the last depth: as many again, or beyond every limit.
    steady: bool,
}

impl Weight {
    pub(super) fn of(schema: &Value) -> Result<Self, BadSchema> {
        let graph = Graph::of(schema)?;
        let groups = graph.groups()?;
        let mut now = vec![0_u64; graph.parts.len()];
        for (part, count) in &groups[0] {
            now[*part] = *count;
        }
        let mut weight = Self { visits: Vec::new(), steady: false };
        for depth in 0..DEPTH_MAX {
            let total = now.iter().fold(0_u64, |sum, count| sum.saturating_add(*count));
            if depth == 0 && total > VISITS_MAX {
                return Err(BadSchema::TooCostly);
            }
            weight.visits.push(total);
            let next = graph.descend(&groups, &now);
            weight.steady = next == now;
            if weight.steady || total > STEPS_MAX {
                break;
            }
            now = next;
        }
        Ok(weight)
    }

    /// Whether these arguments can be checked within the limit.
    pub(super) fn is_affordable(&self, args: &Value) -> bool {
        let mut steps = 0;
        self.add(args, 0, &mut steps);
        steps <= STEPS_MAX
    }

    fn add(&self, value: &Value, depth: usize, steps: &mut u64) {
        let visits = match (self.visits.get(depth), self.visits.last()) {
            (Some(visits), _) => *visits,
            (None, Some(last)) if self.steady => *last,
            (None, _) => u64::MAX,
        };
        if visits == 0 {
            return;
        }
        *steps = steps.saturating_add(visits);
        if *steps > STEPS_MAX {
            return;
        }
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.add(item, depth + 1, steps)),
            Value::Object(fields) => {
                fields.values().for_each(|field| self.add(field, depth + 1, steps));
            }
            _ => {}
        }
    }
}

/// Which values below its own a part visits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Below<'a> {
    Field(&'a str),
    AnyField,
    Item,
}

#[derive(Debug, Default)]
struct Part<'a> {
    /// Parts that visit the same value.
    beside: Vec<usize>,
    below: Vec<(Below<'a>, usize)>,
}

/// The parts of a schema; the first is the whole.
struct Graph<'a> {
    root: &'a Value,
    parts: Vec<Part<'a>>,
    places: HashMap<*const Value, usize>,
    anchors: HashMap<&'a str, &'a Value>,
    waiting: Vec<&'a Value>,
}

impl<'a> Graph<'a> {
    fn of(root: &'a Value) -> Result<Self, BadSchema> {
        let mut graph = Self {
            root,
            parts: Vec::new(),
            places: HashMap::new(),
            anchors: HashMap::new(),
            waiting: Vec::new(),
        };
        graph.find_anchors(root);
        graph.part(root);
        while let Some(schema) = graph.waiting.pop() {
            if graph.parts.len() > PARTS_MAX {
                return Err(BadSchema::TooLarge);
            }
            let index = graph.part(schema);
            if let Value::Object(fields) = schema {
                graph.read(index, fields)?;
            }
        }
        Ok(graph)
    }

    fn part(&mut self, schema: &'a Value) -> usize {
        *self.places.entry(std::ptr::from_ref(schema)).or_insert_with(|| {
            self.parts.push(Part::default());
            self.waiting.push(schema);
            self.parts.len() - 1
        })
    }

    fn find_anchors(&mut self, value: &'a Value) {
        match value {
            Value::Object(fields) => {
                for key in ["$anchor", "$dynamicAnchor"] {
                    if let Some(name) = fields.get(key).and_then(Value::as_str) {
                        self.anchors.insert(name, value);
                    }
                }
                fields.values().for_each(|field| self.find_anchors(field));
            }
            Value::Array(items) => items.iter().for_each(|item| self.find_anchors(item)),
            _ => {}
        }
    }

    fn read(&mut self, index: usize, fields: &'a Map<String, Value>) -> Result<(), BadSchema> {
        for (keyword, value) in fields {
            match (keyword.as_str(), value) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(target)) => {
                    let target = self.target(target)?;
                    self.beside(index, target);
                }
                ("not" | "if" | "then" | "else", schema) => self.beside(index, schema),
                ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                    schemas.iter().for_each(|schema| self.beside(index, schema));
                }
                ("dependentSchemas" | "dependencies", Value::Object(schemas)) => {
                    schemas.values().for_each(|schema| self.beside(index, schema));
                }
                ("properties", Value::Object(schemas)) => {
                    for (name, schema) in schemas {
                        self.below(index, Below::Field(name), schema);
                    }
                }
                ("patternProperties", Value::Object(schemas)) => {
                    schemas.values().for_each(|schema| self.below(index, Below::AnyField, schema));
                }
                ("additionalProperties" | "unevaluatedProperties" | "propertyNames", schema) => {
                    self.below(index, Below::AnyField, schema);
                }
                ("prefixItems" | "items", Value::Array(schemas)) => {
                    schemas.iter().for_each(|schema| self.below(index, Below::Item, schema));
                }
                ("items" | "additionalItems" | "unevaluatedItems" | "contains", schema) => {
                    self.below(index, Below::Item, schema);
                }
                // Visited only when referred to, but they may refer to others.
                ("$defs" | "definitions", Value::Object(schemas)) => {
                    schemas.values().for_each(|schema| {
                        self.part(schema);
                    });
                }
                ("$id" | "id", Value::String(id)) if index != 0 && !id.starts_with('#') => {
                    return Err(BadSchema::Invalid(format!("a part of it has its own id, `{id}`")));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn beside(&mut self, index: usize, schema: &'a Value) {
        let other = self.part(schema);
        self.parts[index].beside.push(other);
    }

    fn below(&mut self, index: usize, below: Below<'a>, schema: &'a Value) {
        let other = self.part(schema);
        self.parts[index].below.push((below, other));
    }

    fn target(&self, reference: &str) -> Result<&'a Value, BadSchema> {
        let Some(inside) = reference.strip_prefix('#') else {
            return Err(BadSchema::Remote(reference.to_owned()));
        };
        let found = match inside.is_empty() || inside.starts_with('/') {
            true => self.root.pointer(&percent_decoded(inside)),
            false => self.anchors.get(inside).copied(),
        };
        found.ok_or_else(|| BadSchema::Dangling(reference.to_owned()))
    }

    /// Parts in topological order: each before those beside it; an error if one is beside itself.
    fn order(&self) -> Result<Vec<usize>, BadSchema> {
        let mut incoming = vec![0_usize; self.parts.len()];
        for part in &self.parts {
            part.beside.iter().for_each(|other| incoming[*other] += 1);
        }
        let mut order: Vec<usize> =
            (0..self.parts.len()).filter(|index| incoming[*index] == 0).collect();
        let mut next = 0;
        while let Some(index) = order.get(next).copied() {
            next += 1;
            for other in &self.parts[index].beside {
                incoming[*other] -= 1;
                if incoming[*other] == 0 {
                    order.push(*other);
                }
            }
        }
        match order.len() == self.parts.len() {
            true => Ok(order),
            false => Err(BadSchema::Endless("$ref".to_owned())),
        }
    }

    /// For every part: the parts that visit the same value because of it, itself included, and how often.
    fn groups(&self) -> Result<Vec<HashMap<usize, u64>>, BadSchema> {
        let mut groups = vec![HashMap::new(); self.parts.len()];
        let mut entries = 0;
        for index in self.order()?.into_iter().rev() {
            let mut group = HashMap::from([(index, 1_u64)]);
            for other in &self.parts[index].beside {
                for (part, count) in &groups[*other] {
                    let sum: &mut u64 = group.entry(*part).or_insert(0);
                    *sum = sum.saturating_add(*count);
                }
            }
            entries += group.len();
            if entries > GROUPS_MAX {
                return Err(BadSchema::TooCostly);
            }
            groups[index] = group;
        }
        Ok(groups)
    }

    /// Visits one level down: for every part the most visits of a value that contains it.
    fn descend(&self, groups: &[HashMap<usize, u64>], visits: &[u64]) -> Vec<u64> {
        let mut by_value: BTreeMap<Below<'a>, HashMap<usize, u64>> = BTreeMap::new();
        for (part, looked) in self.parts.iter().zip(visits).filter(|(_, looked)| **looked > 0) {
            for (below, other) in &part.below {
                let sums = by_value.entry(*below).or_default();
                for (part, count) in &groups[*other] {
                    let sum = sums.entry(*part).or_insert(0);
                    *sum = sum.saturating_add(count.saturating_mul(*looked));
                }
            }
        }
        let any_field = by_value.remove(&Below::AnyField).unwrap_or_default();
        let mut next = vec![0_u64; visits.len()];
        for (part, count) in &any_field {
            next[*part] = *count;
        }
        for (below, sums) in by_value {
            for (part, count) in sums {
                let everywhere = match below {
                    Below::Item => 0,
                    _ => any_field.get(&part).copied().unwrap_or(0),
                };
                next[part] = next[part].max(count.saturating_add(everywhere));
            }
        }
        next
    }
}

fn percent_decoded(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let code = match (first, tail) {
            (b'%', [high, low, ..]) => {
                let digit = |byte: &u8| (*byte as char).to_digit(16);
                digit(high).zip(digit(low)).map(|(high, low)| (high * 16 + low) as u8)
            }
            _ => None,
        };
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
