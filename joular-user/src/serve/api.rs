//! Answers programs: JSON in the shapes of the command line where it has any, and pprof.

use std::{collections::BTreeSet, path::Path};

use joular_data::{
    dataset::audit,
    fleet::choice::View,
    report::{
        self,
        export::{ExportFormat, Selection},
        measure::Measure,
        profile::{DataSet, Profile, Unreadable},
        ranking::{By, Ranking, Sort, groups::Groups, rows::Cut},
        tree::{Branches, Levels, Shape},
    },
    text::{escape, time},
};
use serde_json::{Value, json};

use super::{
    answer::{Answer, GZIP, JSON},
    routes::{Asking, Work},
    scan::{Label, Scan},
};
use crate::query::{Part, Query, Refusal, tables};

/// Tables whose rows are not whole processes: their values are labels, too.
const LABELS_OF_ROWS: [By; 3] = [By::Thread, By::Category, By::Method];
const NODES: usize = 16_000;

pub fn top(asking: &Asking<'_>) -> Result<Work, Refusal> {
    let part = asking.part_showing(asking.query, tables::views(asking.query))?;
    let request = tables::request(asking.query, part)?;
    Ok(Box::new(move |place| Ok(Answer { kind: JSON, body: tables::read(place, &request)?.into() })))
}

pub fn measure_of(query: &Query) -> Result<Measure, Refusal> {
    let named = query.one("measure").map(str::parse::<Measure>).transpose();
    named.map(Option::unwrap_or_default).map_err(|cause| Refusal::bad(escape(&format!("measure: {cause}"))))
}

pub fn flame(asking: &Asking<'_>) -> Result<Work, Refusal> {
    let part = asking.part_showing(asking.query, [View::Tree(Levels::Frames)])?;
    let measure = measure_of(asking.query)?;
    let most = asking.terms.most_nodes;
    let nodes = asking.query.number("nodes", 1..=most, NODES.min(most))?;
    Ok(Box::new(move |place| {
        let read = || Profile::read(place, &part.filter, part.app.as_ref());
        let profile = part.filter.unreadable.reading(read)?;
        let mut branches = Branches::new(Shape::default(), measure);
        branches.add(&profile);
        let whole = branches.tree();
        let tree = whole.largest(nodes);
        let names = tree.names();
        let node = |node: &report::tree::Node| {
            json!({
                "name": names.get(node.label).map(|name| name.raw()),
                "kind": tree.kind(node).name(),
                "parent": node.parent,
                "self": node.own.of(measure),
                "total": node.total.of(measure),
                "samples": node.total.samples,
            })
        };
        with_source(
            &profile,
            json!({
                "measure": measure.name(),
                "unit": if measure == Measure::Energy { "uj" } else { "amount" },
                "until": profile.overview.span.map(|(_, end)| time(end)),
                "merged_nodes": whole.nodes.len().saturating_sub(nodes),
                "nodes": tree.nodes.iter().map(node).collect::<Vec<_>>(),
            }),
        )
    }))
}

pub fn series(asking: &Asking<'_>) -> Result<Work, Refusal> {
    let by = asking.query.one("by").map(process_label).transpose()?;
    let views = by.as_ref().and_then(Label::view).into_iter().chain([View::OverTime]);
    let part = asking.part_showing(asking.query, views)?;
    Ok(Box::new(move |place| {
        let scan = Scan::read(place, &part)?;
        let groups = by.as_ref().map_or_else(|| scan.whole().into_iter().collect(), |label| scan.by(label));
        let one = |group: &super::scan::Group| {
            json!({
                "name": group.name,
                "energy_uj": group.energy,
                "energies_uj": group.series,
                "watts": scan.watts(&group.series),
            })
        };
        with_source(
            &scan.profile,
            json!({
                "start": time(joular_data::model::units::UnixMicros(scan.clock.start_us)),
                "end": scan.until().map(time),
                "start_us": scan.clock.start_us,
                "end_us": scan.until(),
                "step_us": scan.clock.width_us,
                "points": scan.clock.buckets,
                "by": by.as_ref().map(Label::name),
                "series": groups.iter().map(one).collect::<Vec<_>>(),
            }),
        )
    }))
}

/// An object, with what it was read from if there was a choice.
fn with_source(profile: &Profile, mut answer: Value) -> Result<Answer, Refusal> {
    if let (Some(answer), Some(from)) = (answer.as_object_mut(), &profile.overview.read_from) {
        answer.extend(from.keys());
    }
    Answer::json(&answer)
}

fn process_label(name: &str) -> Result<Label, Refusal> {
    Label::named(name).ok_or_else(|| {
        let known: Vec<String> = Label::ALL.iter().map(Label::name).collect();
        Refusal::bad(format!("by: '{}' is not one of {}, label:KEY", escape(name), known.join(", ")))
    })
}

pub fn labels(asking: &Asking<'_>) -> Result<Work, Refusal> {
    let part = asking.part()?;
    Ok(Box::new(move |place| {
        let catalog = part.filter.unreadable.reading(|| DataSet::open(place, &part.filter))?.catalog;
        let seen = catalog.processes.iter().filter(|process| part.filter.access.allows(&catalog, process));
        let of_pods = seen.flat_map(|process| &process.labels);
        let of_hosts = catalog.runs.iter().flat_map(|run| &run.info.identity.labels);
        let keys = of_pods.chain(of_hosts).filter_map(|label| label.raw().split_once('='));
        let keys: BTreeSet<String> = keys.map(|(key, _)| format!("{}{key}", Label::PREFIX)).collect();
        let known = Label::ALL.iter().map(Label::name);
        let of_rows = LABELS_OF_ROWS.iter().map(|by| by.name().to_owned());
        Answer::json(&json!({ "labels": known.chain(of_rows).chain(keys).collect::<Vec<_>>() }))
    }))
}

pub fn values(asking: &Asking<'_>) -> Result<Work, Refusal> {
    let rows = LABELS_OF_ROWS.into_iter().find(|by| by.name() == asking.name);
    let label = match rows {
        Some(_) => None,
        None => Some(Label::named(asking.name).ok_or_else(|| {
            let name = escape(asking.name);
            Refusal::bad(format!("'{name}' is not a label: /api/v1/labels lists those there are"))
        })?),
    };
    let view = rows.map(View::Table).or_else(|| label.as_ref().and_then(Label::view));
    let part = asking.part_showing(asking.query, view)?;
    let name = asking.name.to_owned();
    Ok(Box::new(move |place| {
        let scan = Scan::read(place, &part)?;
        let values: Vec<Value> = match (rows, &label) {
            (Some(by), _) => {
                let cut = Cut { top: 0, sort: Sort::Own, is_partial: !part.filter.allows_all_paths() };
                let table = Ranking::of(&scan.profile, &Groups::of(by, &scan.profile), cut, None, None);
                // The first detail is what selects it.
                let value = |row: &report::ranking::RankedRow| json!({ "value": row.group.details.first(), "energy_uj": row.own.amounts.energy });
                table.rows.iter().map(value).collect()
            }
            (None, label) => {
                let groups = label.as_ref().map(|label| scan.by(label)).unwrap_or_default();
                groups.iter().map(|group| json!({ "value": group.name, "energy_uj": group.energy })).collect()
            }
        };
        with_source(&scan.profile, json!({ "label": name, "until": scan.until().map(time), "values": values }))
    }))
}

pub fn runs(_: &Asking<'_>) -> Result<Work, Refusal> {
    Ok(Box::new(|place| {
        let runs = report::runs::read(place, &Unreadable::left_out())?;
        Answer::written(|out| runs.write(true, None, out))
    }))
}

pub fn audit(_: &Asking<'_>) -> Result<Work, Refusal> {
    Ok(Box::new(|place| Answer::json(&audit::run(place)?)))
}

pub fn pprof(asking: &Asking<'_>) -> Result<Work, Refusal> {
    let Part { filter, app } = asking.part()?;
    Ok(Box::new(move |place: &Path| {
        let format = ExportFormat::of("pprof").ok_or_else(|| Refusal::broken("there is no pprof".to_owned()))?;
        let selection = Selection { data: place, filter: &filter, app: app.as_ref(), measure: Measure::Energy };
        let mut body = Vec::new();
        format.write(&selection, &mut body)?;
        Ok(Answer { kind: GZIP, body: body.into() })
    }))
}
