//! Names parameters, and says what their values may be.

use joular_data::{
    attribution::window_report::Category,
    report::{diff::CompareBy, measure::Measure, ranking::By},
};
use serde_json::{Value, json};

use crate::config;

/// A parameter, and what is said of it.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    pub name: &'static str,
    /// Whether several values, divided by commas or given one by one, are alternatives.
    pub is_list: bool,
    pub about: &'static str,
    pub values: Values,
}

/// What a value of a parameter may be.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    Text,
    /// Whole numbers of a range; without an end there is none.
    Whole {
        least: usize,
        most: Option<usize>,
    },
    OneOf(fn() -> Vec<&'static str>),
    /// One of these, or `label:KEY`.
    OneOfOrLabel(fn() -> Vec<&'static str>),
}

pub const fn one(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, is_list: false, about, values: Values::Text }
}

pub const fn list(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, is_list: true, about, values: Values::Text }
}

impl Parameter {
    pub const fn of(self, values: Values) -> Self {
        Self { values, ..self }
    }

    /// The JSON schema of its value, or of its list of values.
    pub fn schema(&self) -> Value {
        let one = self.values.schema();
        if self.is_list { json!({ "type": "array", "items": one }) } else { one }
    }
}

impl Values {
    fn schema(self) -> Value {
        match self {
            Self::Text => json!({ "type": "string" }),
            Self::Whole { least, most: None } => json!({ "type": "integer", "minimum": least }),
            Self::Whole { least, most: Some(most) } => {
                json!({ "type": "integer", "minimum": least, "maximum": most })
            }
            Self::OneOf(names) => json!({ "type": "string", "enum": names() }),
            Self::OneOfOrLabel(names) => {
                let label = json!({ "type": "string", "pattern": "^label:[^=]+$" });
                json!({ "anyOf": [{ "type": "string", "enum": names() }, label] })
            }
        }
    }
}

/// What selects a part of the data set.
pub const SELECTION: &[Parameter] = &[
    one("from", "windows that start at or after this time: 2026-03-01T12:00:00Z, Unix seconds, or now-1h"),
    one("until", "windows that start before this time"),
    list("service", "processes of this service, or a pattern with * and ?"),
    list("version", "processes of this version of their service, or a pattern"),
    list("host", "runs on this host, or a pattern"),
    list("run", "runs with this id, or a pattern; last is the recording that began last"),
    list("process", "processes with this name, main class or container, or a pattern"),
    list("pid", "processes with this id").of(Values::Whole { least: 0, most: None }),
    list("pod", "processes in the pod with this uid or name, or a pattern"),
    list("namespace", "processes in pods of this namespace, or a pattern"),
    list("label", "processes in pods or on hosts with this label, KEY=VALUE"),
    list("thread", "threads with this name, or a pattern"),
    list("category", "threads of this category: java, gc, jit, vm, native or kernel").of(Values::OneOf(categories)),
    list("method", "call paths that contain this method, package.Class.name, or a pattern"),
];

pub const APP: Parameter = list("app", "application view: energy goes to these packages or classes");
pub const MEASURE: Parameter =
    one("measure", "energy, allocated, sent or another measure of the recording").of(Values::OneOf(measures));
pub const VIEW: Parameter = one("view", "self or total: what ranks or is compared").of(Values::OneOf(views));
pub const TOP: Parameter = one("top", "number of rows, 0 for all").of(Values::Whole { least: 0, most: None });
pub const BY: Parameter = list("by", "what a row is, as report --by").of(Values::OneOfOrLabel(tables));
pub const ONE_BY: Parameter = one("by", "what a row is, as diff --by").of(Values::OneOf(compared));
pub const GROUP: Parameter = one("by", "a series for each service, version, host, process, pod or namespace");
pub const PER: Parameter =
    one("per", "what is compared: time (watts), cpu, run or none, as diff --per").of(Values::OneOf(divisors));
pub const NODES: Parameter = one("nodes", "number of nodes, at most as many as --nodes; the smallest ones are merged")
    .of(Values::Whole { least: 1, most: None });
pub const TIER: Parameter =
    one("tier", "what of a place that hosts ship to is read: auto, raw, minutes or hourly, as report --tier")
        .of(Values::OneOf(config::tiers));
pub const REFRESH: Parameter = one("refresh", "off: the page does not ask again every minute");

/// Sides of a comparison, which have parameters of their own.
pub const SIDES: [&str; 2] = ["left.", "right."];

fn categories() -> Vec<&'static str> {
    Category::ALL.iter().map(|category| category.name()).collect()
}

fn measures() -> Vec<&'static str> {
    Measure::all().map(Measure::name).collect()
}

fn views() -> Vec<&'static str> {
    vec!["self", "total"]
}

fn tables() -> Vec<&'static str> {
    By::ALL.into_iter().chain([By::ClassAllocated]).map(By::name).collect()
}

fn compared() -> Vec<&'static str> {
    CompareBy::ALL.iter().map(|by| by.name()).collect()
}

fn divisors() -> Vec<&'static str> {
    vec!["time", "cpu", "run", "none"]
}

#[cfg(test)]
mod tests {
    use joular_data::{model::units::UnixMicros, report::profile::Stop};

    use super::{
        super::{Query, comparison, tables as read_tables},
        *,
    };

    /// Whatever a schema lists is understood.
    #[test]
    fn every_value_that_is_listed_is_taken() {
        let allowed = [SELECTION, &[APP, BY, MEASURE, VIEW, TOP]].concat();
        let of_tables = |text: &str| {
            let query = Query::parse(text, &allowed, false)?;
            let part = query.part("", UnixMicros(0), &Stop::default())?;
            read_tables::request(&query, part).map(drop)
        };
        for (parameter, names) in [("category", categories()), ("view", views()), ("measure", measures())] {
            for name in names {
                assert_eq!(of_tables(&format!("{parameter}={name}&by=method")), Ok(()), "{parameter}={name}");
            }
        }
        for name in tables().into_iter().chain(["label:app"]) {
            assert_eq!(of_tables(&format!("by={name}")), Ok(()), "by={name}");
        }
        for (name, values) in [("by", compared()), ("per", divisors())] {
            for value in values {
                let query = Query::parse(&format!("{name}={value}"), &[ONE_BY, PER], false).unwrap();
                assert!(comparison::choices(&query).is_ok(), "{name}={value}");
            }
        }
    }
}
