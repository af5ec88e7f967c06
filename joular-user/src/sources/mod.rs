//! Shows where joules can come from on this machine, for `joular-bpf sources`.

use std::{io, io::Write};

use joular_data::model::domain::{Domain, Role, Update};
use serde::Serialize;

use crate::{
    cli::Exit,
    config::{DEFAULT_INTERVAL, duration::nanoseconds},
    energy::{
        self, EnergyOptions, EnergySource, Opened, SOURCES, SourceKind, Unusable, UnusableKind,
        select::{Selected, Use},
        watch,
    },
};

/// All there is.
#[derive(Serialize)]
struct Listing {
    sources: Vec<Row>,
    /// Why a recording with these options would have no energy source.
    would_fail: Option<String>,
}

/// One source.
#[derive(Serialize)]
struct Row {
    source: &'static str,
    /// What a recording would do with it, or why it cannot use it.
    state: &'static str,
    usable: bool,
    why_not: Option<String>,
    measures: &'static str,
    permission: &'static str,
    /// What its figures are based on here.
    basis: Option<String>,
    resolution: Option<String>,
    /// Why energy is only measured coarsely.
    warning: Option<String>,
    domains: Vec<DomainRow>,
}

/// Domains that differ in their core only.
#[derive(Serialize)]
struct DomainRow {
    domain: String,
    socket: Option<u32>,
    cores: Vec<u32>,
    role: &'static str,
    /// The domain that it is a part or a check of.
    of: Option<String>,
    /// Names of what is taken off.
    less: Vec<String>,
    /// In windows of the usual length.
    label: &'static str,
    /// How often its counter advances; `None` if it has none or was not seen to advance.
    update: Option<Update>,
}

/// Opens every source, writes what there is, and lets them go again. Success
/// if a recording would find its energy source.
pub fn run(out: &mut impl Write, options: &EnergyOptions, json: bool) -> io::Result<Exit> {
    run_among(SOURCES, out, options, json)
}

/// [`run`] with other kinds than [`SOURCES`].
pub fn run_among(kinds: &[SourceKind], out: &mut impl Write, options: &EnergyOptions, json: bool) -> io::Result<Exit> {
    let listing = {
        let selected = energy::select::select_from(kinds, options);
        let uses = selected.as_ref().map_or(&[][..], |Selected { uses, .. }| uses);
        let mut opened: Vec<_> = kinds.iter().map(|kind| (kind, kind.open(options))).collect();
        let usable = opened.iter_mut().filter_map(|(_, opened)| opened.as_mut().ok());
        let mut usable: Vec<&mut dyn EnergySource> = usable.map(|opened| opened.source.as_mut() as _).collect();
        let mut updates = watch::watch(&mut usable).into_iter();
        let mut row = |(kind, opened): (&SourceKind, Result<Opened, Unusable>)| {
            let updates = opened.as_ref().ok().and_then(|_| updates.next()).unwrap_or_default();
            row(kind, opened, &updates, uses)
        };
        let sources = opened.into_iter().map(&mut row).collect();
        Listing { sources, would_fail: selected.err().map(|error| error.to_string()) }
    };
    if json {
        serde_json::to_writer_pretty(&mut *out, &listing)?;
        writeln!(out)?;
    } else {
        listing.sources.iter().try_for_each(|row| write_text(out, row))?;
        listing.would_fail.iter().try_for_each(|why| writeln!(out, "a recording would fail: {why}"))?;
    }
    Ok(if listing.would_fail.is_none() { Exit::Success } else { Exit::Failure })
}

fn row(kind: &SourceKind, opened: Result<Opened, Unusable>, updates: &[Option<Update>], uses: &[(&str, Use)]) -> Row {
    let as_what = uses.iter().find(|(name, _)| *name == kind.name).map(|(_, as_what)| *as_what);
    let state = match (&opened, as_what) {
        (Ok(_), Some(Use::Chosen)) => "chosen",
        (Ok(_), Some(Use::Added)) => "added",
        (Ok(_), Some(Use::CrossCheck)) => "check",
        (Ok(_), None) => "usable",
        (Err(why), _) => match why.kind {
            UnusableKind::NotAsked => "not asked",
            UnusableKind::Absent => "absent",
            UnusableKind::Denied => "denied",
            UnusableKind::Broken => "broken",
        },
    };
    let SourceKind { name: source, measures, permission, .. } = *kind;
    let usable = opened.is_ok();
    let window_ns = nanoseconds(DEFAULT_INTERVAL);
    let (why_not, basis, resolution, domains) = match opened {
        Ok(Opened { source, basis, resolution }) => {
            (None, Some(basis), Some(resolution), watch::noted(source.domains(), updates, window_ns))
        }
        Err(why) => (Some(why.text), None, None, Vec::new()),
    };
    let (warning, domains) = (watch::notice(&domains, window_ns), domain_rows(&domains));
    Row { source, state, usable, why_not, measures, permission, basis, resolution, warning, domains }
}

fn domain_rows(domains: &[Domain]) -> Vec<DomainRow> {
    let mut rows: Vec<DomainRow> = Vec::new();
    for domain in domains {
        let name_at = |index: usize| domains.get(index).map(|other| other.name.clone());
        let (role, of) = match domain.role {
            Role::Shared => ("shared", None),
            Role::Unshared => ("unshared", None),
            Role::Part { of } => ("part", name_at(of)),
            Role::Check { of } => ("check", name_at(of)),
        };
        let mut less: Vec<String> = domain.less.iter().copied().filter_map(name_at).collect();
        less.sort();
        less.dedup();
        let (name, socket) = (&domain.name, domain.socket);
        let same = |row: &&mut DomainRow| (&row.domain, row.socket, row.role) == (name, socket, role);
        match (domain.core, rows.last_mut().filter(same).filter(|row| !row.cores.is_empty())) {
            (Some(core), Some(row)) => row.cores.push(core),
            (core, _) => rows.push(DomainRow {
                domain: name.clone(),
                socket,
                cores: Vec::from_iter(core),
                role,
                of,
                less,
                label: domain.label.name(),
                update: domain.update(),
            }),
        }
    }
    rows
}

fn write_text(out: &mut impl Write, row: &Row) -> io::Result<()> {
    writeln!(out, "{:<12} {:<10} {}", row.source, row.state, row.measures)?;
    let mut line = |name: &str, text: &str| writeln!(out, "{:12} {name:<10} {text}", "");
    line("needs", row.permission)?;
    if let Some(why_not) = &row.why_not {
        line("why not", why_not)?;
    }
    if let Some(basis) = &row.basis {
        line("based on", basis)?;
    }
    if let Some(resolution) = &row.resolution {
        line("resolution", resolution)?;
    }
    if let Some(warning) = &row.warning {
        line("warning", warning)?;
    }
    row.domains.iter().try_for_each(|domain| line(&domain.domain, &describe(domain)))
}

/// `socket 0, cores 0-7, shared, measured`
fn describe(row: &DomainRow) -> String {
    let mut words = vec![row.socket.map_or("machine".to_owned(), |socket| format!("socket {socket}"))];
    if let [first, .., last] = row.cores[..] {
        words.push(format!("{} cores {first}-{last}", row.cores.len()));
    } else if let [core] = row.cores[..] {
        words.push(format!("core {core}"));
    }
    words.push(row.of.as_ref().map_or(row.role.to_owned(), |of| format!("{} of {of}", row.role)));
    if !row.less.is_empty() {
        words.push(format!("without {}", row.less.join(", ")));
    }
    words.push(row.label.to_owned());
    words.extend(row.update.map(|update| format!("advances every {update}")));
    words.join(", ")
}

#[cfg(test)]
mod tests;
