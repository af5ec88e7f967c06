//! Writes what a run says when it ends: where the energy went, how good the figures are, and where
//! to read more.

use std::{fmt::Write as _, path::Path};

use joular_data::{
    events::{RunEnd, RunInfo},
    model::{
        cores,
        domain::{self, Domain, Label, Role},
        frame::Marker,
        measure::Unit,
    },
    text::{
        Keep, count, cut, escape,
        figures::{self, Places},
        seconds, share,
    },
    totals::{
        EVICTED, Tally, Totals,
        audit::{audit, model_note, source, warnings},
        lag::Lag,
    },
};

const TOP_METHODS: usize = 10;
const TOP_PROCESSES: usize = 5;
const TOP_PHASES: usize = 30;
/// A name is not cut shorter, even if its line is longer than the terminal then.
const NAME_ROOM: usize = 16;

/// The whole text. On a terminal of this width, names are cut so that lines of tables fit.
pub fn summary(run: &RunInfo, end: &RunEnd, totals: &Totals, data: Option<&Path>, width: Option<usize>) -> String {
    let mut text = format!(
        "\n{:.1} s in {}, ended by {}; energy of {} from {}\n\n",
        seconds(totals.sums.elapsed_ns),
        count(totals.sums.windows, "window"),
        escape(&end.reason),
        domain_names(run),
        source(run, totals.sums.label)
    );
    text.push_str(&audit(&totals.sums));
    if let Some(warning) = cores::warning(domain::core_types(&run.domains)) {
        let _ = writeln!(text, "\nwarning: {warning}");
    }
    text.push_str(&processes(totals, width));
    text.push_str(&phases(totals, width));
    text.push_str(&measured(totals));
    text.push_str(&jvms(totals, width));
    text.push_str(&methods(totals, width));
    text.push_str(&quality(totals));
    if let Some(data) = data {
        text.push_str(&reading(data));
    }
    text
}

/// The domains that add up to the whole, with what they leave out.
fn domain_names(run: &RunInfo) -> String {
    let counted = |domain: &&Domain| matches!(domain.role, Role::Shared | Role::Unshared);
    let counted: Vec<Domain> = run.domains.iter().filter(counted).cloned().collect();
    if counted.is_empty() { "no domain".to_owned() } else { escape(&domain::names(&counted)) }
}

/// A line of a table: figures, a name as long as there is room for, and what is said of it.
fn row(figures: &str, name: &str, said: &str, width: Option<usize>) -> String {
    let columns = |text: &str| text.chars().count();
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(columns(figures) + columns(said)).max(NAME_ROOM));
    format!("{figures}{}{said}\n", cut(name, room, Keep::Name))
}

fn processes(totals: &Totals, width: Option<usize>) -> String {
    let mut text = "\nProcesses\n".to_owned();
    for (process, tally) in totals.processes.ranked().into_iter().take(TOP_PROCESSES) {
        let name = format!("{} {}", process.pid, totals.title(process));
        let part = share(tally.energy, totals.sums.attributed);
        let joules = figures::figure(tally.energy.joules(), totals.sums.label);
        text.push_str(&row(&format!("  {joules:>14} J  {part:>5.1} %  "), &name, "", width));
    }
    text
}

/// Empty if no program marked any.
fn phases(totals: &Totals, width: Option<usize>) -> String {
    let tallies = totals.phases.tallies();
    if tallies.is_empty() && totals.phases.ignored == 0 {
        return String::new();
    }
    let mut text = "\nPhases, each with those within it\n".to_owned();
    for (path, tally) in tallies.iter().take(TOP_PHASES) {
        let joules = figures::figure(tally.energy.joules(), totals.sums.label);
        let (part, times) = (share(tally.energy, totals.sums.attributed), tally.times);
        let (length_s, cpu_s) = (seconds(tally.length_ns), seconds(tally.cpu_ns));
        let lag = tally.lag.map(|lag| plus_minus(lag, totals.sums.label)).unwrap_or_default();
        let figures =
            format!("  {joules:>14} J{lag}  {part:>5.1} %  {length_s:>9.3} s  {cpu_s:>9.3} CPU s  {times:>5} ×  ");
        text.push_str(&row(&figures, &escape(path), "", width));
    }
    if tallies.len() > TOP_PHASES {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  and {} more", tallies.len() - TOP_PHASES);
    }
    if tallies.iter().any(|(_, tally)| tally.lag.is_some()) {
        text.push_str("± is what energy counters that lag may do to a phase, in 95 of 100 cases at most\n");
    }
    let delays = totals.phases.delays;
    let (mean_ms, longest_ms) = (1e3 * seconds(delays.mean_ns()), 1e3 * seconds(delays.longest_ns));
    let _ = writeln!(text, "Windows ended {mean_ms:.1} ms after the marks on average, {longest_ms:.1} ms at most");
    if let ignored @ 1.. = totals.phases.ignored {
        let _ = writeln!(text, "{ignored} marks did not count: an end without its begin, or too many phases at once");
    }
    text
}

fn plus_minus(lag: Lag, label: Option<Label>) -> String {
    let least = if lag.is_least { "≥ " } else { "" };
    format!(" ± {:>9}", format!("{least}{}", figures::figure(lag.joules(), label)))
}

/// Empty if nothing was measured beside energy and time.
fn measured(totals: &Totals) -> String {
    let mut text = String::new();
    for (measure, amount, per_joule) in totals.measured.sums() {
        let (unit, scale) = if measure.unit() == Unit::Bytes { (" MB", 1e-6) } else { ("", 1.0) };
        let rounded = |value: f64| Places::derived(value * scale, 0.0).write(value * scale) + unit;
        let per_joule = per_joule.map_or_else(|| "-".to_owned(), rounded);
        #[allow(clippy::cast_precision_loss, reason = "for display")]
        let amount = if unit.is_empty() { amount.to_string() } else { format!("{:.3}{unit}", amount as f64 * scale) };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {amount:>14}  {per_joule:>14} per J  {}", measure.name());
    }
    if text.is_empty() { text } else { format!("\nBytes and counts of the targets' threads\n{text}") }
}

/// Empty if no JVM ran.
fn jvms(totals: &Totals, width: Option<usize>) -> String {
    let mut text = String::new();
    for (process, tally) in totals.jvms.ranked().into_iter().take(TOP_PROCESSES) {
        let name = format!("{} {}", process.pid, totals.title(process));
        let (tax, part) = (figures::figure(tally.tax.joules(), totals.sums.label), tally.tax_percent());
        let figures = format!("  {tax:>14} J  {part:>5.1} %  ");
        text.push_str(&row(&figures, &name, &format!(": {}", tally.tax_parts()), width));
    }
    if text.is_empty() {
        text
    } else {
        format!("\nVM tax: energy that each JVM used for itself, as a share of the JVM's energy\n{text}")
    }
}

fn methods(totals: &Totals, width: Option<usize>) -> String {
    let (intervals, label) = (totals.sampling.intervals(), totals.sums.label);
    let mut text = "\nMethods by self energy, with the 95 % interval of sampling\n".to_owned();
    let mut add = |joules: &str, interval: &str, tally: &Tally, name: &str| {
        let part = share(tally.energy, totals.sums.attributed);
        let figures = format!("  {joules:>14} J  {interval:<15}  {part:>5.1} %  ");
        text.push_str(&row(&figures, name, "", width));
    };
    for (name, key, tally) in totals.methods.named(TOP_METHODS) {
        let interval = intervals.of(key, tally.energy);
        let (joules, interval) = figures::with_interval(tally.energy.joules(), interval.joules(), label);
        add(&joules, &interval, tally, &name.to_string());
    }
    if let Some(tally) = totals.methods.evicted() {
        add(&figures::figure(tally.energy.joules(), label), "", tally, EVICTED);
    }
    if let Some(note) = model_note(label) {
        let _ = writeln!(text, "{note}");
    }
    text
}

fn quality(totals: &Totals) -> String {
    let part = |energy| share(energy, totals.sums.attributed);
    let mut text = format!(
        "\nOf the targets' energy {:.1} % has no name ([unresolved] {:.1} %, [no sample] {:.1} %)\n",
        part(totals.unresolved()),
        part(totals.marker(Marker::Unresolved)),
        part(totals.marker(Marker::NoSample))
    );
    if totals.inferred.0 > 0 {
        let _ = writeln!(
            text,
            "{:.1} % of it is of windows in which no sample hit a thread, shared out by samples of other windows",
            part(totals.inferred)
        );
    }
    let mut lines = totals.jvms.quality_lines().into_iter();
    if let Some(complete) = lines.next() {
        let _ = writeln!(text, "Of the JVMs' stacks {complete}");
    }
    lines.for_each(|line| {
        let _ = writeln!(text, "  {line}");
    });
    let warnings = warnings(&totals.sums);
    if let Some(percent) = totals.sums.disagreement_percent() {
        let _ = writeln!(text, "A second counter of the same energy says {percent:+.2} %");
    }
    if warnings.is_empty() {
        text.push_str("Nothing was lost\n");
    }
    for warning in warnings {
        text.push_str(&warning);
        text.push('\n');
    }
    text
}

/// Command lines that can be pasted as they are.
fn reading(data: &Path) -> String {
    let path = escape(&data.display().to_string());
    // Nothing to be quoted has a NUL character, which is what cannot be.
    let word = shlex::try_quote(&path).unwrap_or_default();
    let commands = [("report", "tables"), ("html", "a web page"), ("flamegraph", "a picture")];
    let lines = commands.map(|(command, what)| format!("  joular-bpf {command:<10} {word}  # {what}\n"));
    format!("\nThe data is in {path}:\n{}", lines.concat())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use joular_data::{
        attribution::{
            allocated::AllocationRow,
            counts::{CountRow, Counts},
            work::Claimant,
        },
        fixture::{self, SMALL},
        model::counter::Counter,
        stacks::StackTable,
    };

    use super::{
        super::{Screen, ScreenOutput, snapshot::check_snapshot},
        *,
    };

    fn text(data: Option<&str>) -> String {
        let mut output = ScreenOutput::new(Vec::new(), Screen::Stream, None, data.map(PathBuf::from));
        fixture::play(&mut output, SMALL, 3).unwrap();
        String::from_utf8(output.into_inner()).unwrap()
    }

    #[test]
    fn the_summary_is_complete() {
        check_snapshot("summary.txt", &text(Some("out")));
    }

    #[test]
    fn names_are_cut_where_the_terminal_ends_and_keep_their_end() {
        let name = "com.example.shop.catalogue.Search.byTitle(java.lang.String)";
        for (width, expected) in [
            (None, format!("  1 J  {name}: 3 %\n")),
            (Some(40), "  1 J  …op.catalogue.Search.byTitle: 3 %\n".to_owned()),
            (Some(20), "  1 J  ….Search.byTitle: 3 %\n".to_owned()),
        ] {
            assert_eq!(row("  1 J  ", name, ": 3 %", width), expected);
        }
    }

    #[test]
    fn the_command_can_be_pasted_whatever_the_path() {
        for path in ["joular-out", "a'b$(c)`d\" e"] {
            let text = reading(Path::new(path));
            let words: Vec<_> = text.lines().skip(2).map(|line| shlex::split(line).unwrap()).collect();
            let expected = ["report", "html", "flamegraph"].map(|command| ["joular-bpf", command, path]);
            assert_eq!(words, expected, "{text}");
        }
    }

    #[test]
    fn what_was_counted_is_told_and_nothing_is_said_otherwise() {
        let mut totals = Totals::default();
        assert_eq!(measured(&totals), "");
        let counts = Counts {
            counters: vec![Counter::PageFaults],
            rows: vec![CountRow { claimant: Claimant::Thread(0), counts: vec![42] }],
        };
        let mut stacks = StackTable::default();
        let mut report = fixture::window(SMALL, &mut stacks, 0);
        report.domains.clear();
        report.counts = Some(counts);
        let branch = report.branches[0].branch;
        report.allocations = vec![AllocationRow::new(0, branch, 2_500_000, 0)];
        totals.window(&report, &stacks);
        let expected = [
            "\nBytes and counts of the targets' threads\n",
            "        2.500 MB               - per J  allocated\n",
            "              42               - per J  page-faults\n",
        ];
        assert_eq!(measured(&totals), expected.concat());
    }

    #[test]
    fn the_items_add_up_as_they_are_shown() {
        let joules = |line: &str| {
            let figure = line.split(" J").next()?.rsplit(' ').next()?;
            figure.replace('.', "").parse::<u64>().ok()
        };
        let text = text(None);
        let (items, total): (Vec<&str>, Vec<&str>) =
            text.lines().skip(3).take_while(|line| !line.is_empty()).partition(|line| !line.contains("= energy"));
        assert_eq!(items.iter().filter_map(|line| joules(line)).sum::<u64>(), joules(total[0]).unwrap());
    }
}
