//! Writes a report for people: aligned, and as wide as the terminal.

use std::collections::BTreeSet;

use super::{
    beside,
    by::By,
    by_measure,
    command::{Look, Report},
    context, footprint, rootless,
    rows::{Figures, RankedRow, Ranking},
    selected, unnamed,
};
use crate::{
    model::{domain::Label, units::MicroJoules},
    report::{
        app::AppEnergy,
        footprint::statement,
        profile::{Amounts, OUTSIDE_APP, Profile, ReadFrom},
    },
    text::{
        Keep, count, cut, escape, figures,
        figures::Places,
        line::{Line, Style},
        percent, seconds, share,
        table::{Column, Table},
        watts,
    },
    totals::audit::model_note,
};

/// The report's lines.
pub fn lines(report: &Report<'_>, look: Look) -> Vec<Line> {
    let profile = report.profile;
    let overview = &profile.overview;
    let plain = |text: String| Line { text, style: Style::Plain };
    let heading = |text: &str| Line { text: text.to_owned(), style: Style::Heading };
    let mut lines = vec![heading(&context::extent(profile)), plain(format!("energy of {}", context::source(overview)))];
    lines.extend(chosen(report).into_iter().map(plain));
    for table in report.tables {
        lines.push(plain(String::new()));
        lines.extend(laid_out(table, report).lines(look.width));
    }
    for table in report.of_measures {
        lines.push(plain(String::new()));
        lines.extend(by_measure::laid_out(table, profile).lines(look.width));
    }
    lines.extend(note(report).map(|note| plain(note.to_owned())));
    if let Some(footprints) = report.footprints {
        lines.push(plain(String::new()));
        let mut said = statement::text(footprints, overview).into_iter();
        lines.extend(said.next().map(|title| heading(&title)));
        lines.extend(said.map(|line| plain(format!("  {line}"))));
    }
    let jvms = context::jvms(profile);
    if !jvms.is_empty() {
        lines.push(plain(String::new()));
        lines.push(heading("VM tax: energy that each JVM used for itself, as a share of the JVM's energy"));
        let shown = if report.top == 0 { jvms.len() } else { report.top };
        for (process, tally) in jvms.iter().take(shown) {
            let name = format!("{} {}", process.pid, process.title());
            let (tax, part) = (figures::figure(tally.tax.joules(), overview.label), tally.tax_percent());
            lines.push(plain(format!("  {tax:>14} J  {part:>5.1} %  {name}: {}", tally.tax_parts())));
        }
        if jvms.len() > shown {
            lines.push(plain(format!("  and {} more", jvms.len() - shown)));
        }
    }
    lines.push(plain(String::new()));
    lines.push(heading("All energy of these windows, whatever was selected"));
    lines.extend(context::audit(overview).lines().map(|line| plain(line.to_owned())));
    lines.push(plain(String::new()));
    if !report.has_app() {
        lines.push(plain(unnamed::line(profile)));
        lines.extend(unnamed::hints(profile).into_iter().map(|hint| plain(format!("  {hint}"))));
        lines.extend(rootless::line(profile).map(plain));
    }
    let mut quality = context::quality(overview).into_iter();
    lines.extend(quality.next().map(|complete| plain(format!("Of the JVMs' stacks {complete}"))));
    lines.extend(quality.map(|line| plain(format!("  {line}"))));
    let warnings = context::warnings(overview);
    if warnings.is_empty() {
        lines.push(plain("Nothing was lost".to_owned()));
    }
    lines.extend(warnings.into_iter().map(|text| Line { text, style: Style::Warning }));
    if let Some(width) = look.width {
        lines.iter_mut().for_each(|line| line.text = cut(&line.text, width, Keep::Start));
    }
    lines
}

/// Processes that are named where a selection has none.
const NAMED_PROCESSES: usize = 8;
/// Packages of the application that are named.
const NAMED_PACKAGES: usize = 4;

/// What could be selected instead.
fn what_there_is(profile: &Profile) -> String {
    let catalog = &profile.catalog;
    if catalog.runs.is_empty() {
        return "no run matches it: joular-bpf runs lists them".to_owned();
    }
    let titles: BTreeSet<String> = catalog.processes.iter().map(|process| process.title().to_string()).collect();
    let named: Vec<&str> = titles.iter().take(NAMED_PROCESSES).map(String::as_str).collect();
    let more = titles.len() - named.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let (of, has) = (count(catalog.runs.len(), "run"), if catalog.runs.len() == 1 { "has" } else { "have" });
    match named.as_slice() {
        [] => format!("its {of} {has} no processes"),
        named => format!("its {of} {has} the processes {}{more}", named.join(", ")),
    }
}

/// What was selected, of what, and in which view.
pub fn chosen(report: &Report<'_>) -> Vec<String> {
    let whole = context::chosen(report.profile);
    let of = report.profile.overview.attributed;
    let mut lines: Vec<String> =
        report.profile.overview.read_from.as_ref().and_then(ReadFrom::line).into_iter().collect();
    if report.profile.entries.is_empty() {
        lines.push("nothing in the data set matches this selection".to_owned());
        lines.push(what_there_is(report.profile));
    } else {
        lines.push(format!(
            "selection {} J, {:.1} % of all targets' {} J; {:.3} s of CPU time, {}",
            figures::figure(whole.energy.joules(), report.profile.overview.label),
            share(whole.energy, of),
            figures::figure(of.joules(), report.profile.overview.label),
            seconds(whole.cpu_ns),
            count(whole.samples, "sample")
        ));
    }
    lines.extend(context::inferred(report.profile));
    lines.extend(context::gc_charged(report.profile));
    lines.extend(selected::lines(report.profile));
    if report.has_app() {
        lines.push(format!("application view: its own methods, and {OUTSIDE_APP}"));
    } else if report.app.is_some() {
        lines.push(
            "Java view: native and kernel code counts for the Java code that called it; --all-frames shows it"
                .to_owned(),
        );
    }
    lines.extend(packages(report));
    lines
}

/// The application's packages, and how much of the JVMs' energy passes through them. Nothing where no Java code ran.
fn packages(report: &Report<'_>) -> Option<String> {
    let AppEnergy { packages, jvms, java } = report.packages;
    if java.0 == 0 && (jvms.0 == 0 || !report.has_app()) {
        return None;
    }
    let named: Vec<String> = packages.iter().take(NAMED_PACKAGES).map(|one| escape(&one.package)).collect();
    let part = share(report.packages.reached(), *jvms);
    let more = match packages.len().saturating_sub(NAMED_PACKAGES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let advice = if report.has_app() { "" } else { "; --app auto shows it alone" };
    Some(match named.as_slice() {
        [] => "App: none found, all Java code is the JDK's or known libraries'; --app PREFIX names other packages"
            .to_owned(),
        named => {
            format!("App: {}{more}; {part:.1} % of the JVMs' energy is on its call paths{advice}", named.join(", "))
        }
    })
}

/// The table for people, names of all rows included.
fn laid_out(table: &Ranking, report: &Report<'_>) -> Table {
    let names = table.all_rows().map(|row| row.group.name.clone()).collect();
    Table { columns: columns(table, report), heading: table.by.name().to_uppercase(), names }
}

/// The same as Markdown.
pub fn markdown(table: &Ranking, report: &Report<'_>) -> String {
    Table { heading: table.by.name().to_owned(), ..laid_out(table, report) }.markdown(false)
}

/// Figures of all rows for people, so with the digits that they deserve.
fn columns(table: &Ranking, report: &Report<'_>) -> Vec<Column> {
    let overview = &report.profile.overview;
    let label = overview.label;
    let power = |figures: &Figures| {
        let power = watts(figures.amounts.energy, overview.duration_ns);
        Places::with_error(power, watts(figures.interval.half(), overview.duration_ns), label).write(power)
    };
    let column = |heading: &str, expendable: u8, cell: &dyn Fn(&RankedRow) -> String| Column {
        expendable,
        ..Column::figures(heading, table.all_rows(), cell)
    };
    type Cell = fn(&Figures, Option<Label>) -> String;
    let own = |figures: Cell| move |row: &RankedRow| figures(&row.own, label);
    let total = |figures: Cell| move |row: &RankedRow| figures(&row.total, label);
    let part = |figures: &Figures| format!("{:.1}", share(figures.amounts.energy, table.whole.energy));
    let has_total = table.by.has_total();
    let all_exact = all_exact(table);
    let prefix = if has_total { "SELF " } else { "" };
    let mut columns = vec![column(&format!("{prefix}J"), 0, &own(joules))];
    if !all_exact {
        columns.push(column("95 % FROM–TO", 4, &own(interval)));
    }
    columns.push(column("%", 1, &|row| part(&row.own)));
    columns.push(column("W", 5, &|row| power(&row.own)));
    if table.all_rows().any(|row| row.own.amounts.inferred.0 > 0) {
        let inferred = |row: &RankedRow| {
            let places = Places::with_error(row.own.amounts.energy.joules(), row.own.interval.half().joules(), label);
            places.write(row.own.amounts.inferred.joules())
        };
        columns.push(column("INFERRED J", 6, &inferred));
    }
    if table.whole.by_bytes.0 > 0 {
        let io = |amounts: &Amounts| match amounts.by_bytes {
            MicroJoules(0) => String::new(),
            energy => figures::figure(energy.joules(), label),
        };
        columns.push(column(&format!("{prefix}BYTES J"), 5, &|row| io(&row.own.amounts)));
        if has_total {
            columns.push(column("TOTAL BYTES J", 7, &|row| io(&row.total.amounts)));
        }
    }
    if has_total {
        columns.push(column("TOTAL J", 2, &total(joules)));
        columns.push(column("95 % FROM–TO", 8, &total(interval)));
        columns.push(column("%", 3, &|row| part(&row.total)));
        columns.push(column("W", 9, &|row| power(&row.total)));
    }
    columns.push(column("CPU s", 7, &|row| format!("{:.3}", seconds(row.own.amounts.cpu_ns))));
    columns.push(column("SAMPLES", 6, &|row| row.own.amounts.samples.to_string()));
    if table.rows.iter().any(|row| row.activations.is_some()) {
        columns.push(column("CALLS ≥", 2, &|row| row.activations.map_or(String::new(), |calls| calls.to_string())));
        let each =
            |row: &RankedRow| activation(row).map_or(String::new(), |energy| figures::figure(energy.joules(), label));
        columns.push(column("J EACH ≤", 2, &each));
    }
    columns.extend(beside::columns(table));
    columns.extend(footprint::columns(table, report));
    columns
}

fn all_exact(table: &Ranking) -> bool {
    table.all_rows().all(|row| row.own.interval.is_exact() && row.total.interval.is_exact())
}

/// What a reader must know of the intervals of these tables.
pub fn note(report: &Report<'_>) -> Option<&'static str> {
    if report.tables.iter().all(all_exact) { None } else { model_note(report.profile.overview.label) }
}

/// Energy of a call at most, on average.
pub fn activation(row: &RankedRow) -> Option<MicroJoules> {
    row.activations.filter(|calls| *calls > 0).map(|calls| MicroJoules(row.total.amounts.energy.0.div_ceil(calls)))
}

fn joules(figures: &Figures, label: Option<Label>) -> String {
    shown(figures, label).0
}

fn interval(figures: &Figures, label: Option<Label>) -> String {
    shown(figures, label).1
}

fn shown(figures: &Figures, label: Option<Label>) -> (String, String) {
    figures::with_interval(figures.amounts.energy.joules(), figures.interval.joules(), label)
}

/// The caption of tables of this sort.
pub fn caption(by: By) -> String {
    let name = by.name();
    if by.has_total() { format!("by {name}: self, and total with what it called") } else { format!("by {name}") }
}

/// A share in per cent that machines read: enough digits for one microjoule in a megajoule.
pub fn precise_percent(part: MicroJoules, whole: MicroJoules) -> f64 {
    percent(part.0, whole.0)
}
