//! Writes what the live view shows as text. Pure: figures and a size in, lines out.

use jiff::Timestamp;
use joular_data::{
    attribution::window_report::WindowReport,
    events::RunInfo,
    model::{
        domain::Label,
        frame::Marker,
        units::{MicroJoules, UnixMicros},
    },
    text::{
        Keep, cut, figures,
        line::{Line, Size, Style},
        percent, seconds, share, watts,
    },
    totals::{
        EVICTED, RunSums, Tally, Totals,
        audit::{source, warnings},
    },
};

/// A column: its heading, its width, and how early it goes where room is scarce: the greatest number first.
type Place = (&'static str, usize, u8);

const PROCESS: [Place; 4] = [("PID", 8, 2), ("W", 9, 0), ("J", 12, 1), ("CPU %", 6, 3)];
const METHOD: [Place; 4] = [("J", 9, 0), ("95 % FROM–TO", 13, 3), ("W", 8, 2), ("SHARE", 6, 1)];

/// Names get this much room even if figures are left out for it.
const NAME_ROOM: usize = 20;

/// How early a line goes where not all fit: the greatest first, of equal ones the last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wanted {
    Always,
    Warning,
    Totals,
    Process,
    Quality,
    Blank,
}

/// The table, at most one line lower than the terminal (the cursor needs one) and with at most `top` methods. On a low
/// terminal other lines go before the first method does.
pub fn lines(run: &RunInfo, totals: &Totals, report: &WindowReport, size: Size, top: usize) -> Vec<Line> {
    let (header, footer) = (header(run, totals, report), footer(totals));
    // Two headings and three empty lines stand between the parts.
    let room = size.height.saturating_sub(1 + header.len() + footer.len() + 5);
    let processes = process_lines(totals, report, size.width);
    let shown = processes.len().min((room / 3).max(1));
    let methods = method_lines(totals, report, size.width, room.saturating_sub(shown).max(1).min(top));
    let blank = || (Wanted::Blank, Line::new(Style::Plain, ""));
    let headed = |what: &str, columns: &[Place; 4]| {
        Line::new(Style::Heading, cells(columns, columns.map(|(heading, ..)| heading), size.width) + what)
    };
    let mut lines: Vec<(Wanted, Line)> = [Wanted::Always, Wanted::Totals].into_iter().zip(header).collect();
    lines.extend([blank(), (Wanted::Process, headed("PROCESS", &PROCESS))]);
    lines.extend(processes.into_iter().take(shown).map(|line| (Wanted::Process, line)));
    lines.extend([blank(), (Wanted::Always, headed("METHOD (self)", &METHOD))]);
    lines.extend(methods.into_iter().map(|line| (Wanted::Always, line)));
    lines.push(blank());
    lines.extend(
        footer
            .into_iter()
            .map(|line| (if line.style == Style::Warning { Wanted::Warning } else { Wanted::Quality }, line)),
    );
    while lines.len() >= size.height.max(1) {
        let least = lines.iter().enumerate().max_by_key(|(_, (wanted, _))| *wanted).map_or(0, |(at, _)| at);
        lines.remove(least);
    }
    lines.into_iter().map(|(_, line)| Line { text: cut(&line.text, size.width, Keep::Start), ..line }).collect()
}

/// Figures below their headings, as many as leave room for a name.
fn cells<const N: usize>(columns: &[Place; N], texts: [&str; N], width: usize) -> String {
    let mut left: Vec<(Place, &str)> = columns.iter().copied().zip(texts).collect();
    while left.len() > 1 && left.iter().map(|((_, wide, _), _)| wide + 2).sum::<usize>() + NAME_ROOM > width {
        let least = left.iter().enumerate().max_by_key(|(_, ((.., early), _))| *early).map_or(0, |(at, _)| at);
        left.remove(least);
    }
    left.into_iter().map(|((_, wide, _), text)| format!("{text:>wide$}  ")).collect()
}

fn header(run: &RunInfo, totals: &Totals, report: &WindowReport) -> Vec<Line> {
    let (now, sums) = (RunSums::of(report), &totals.sums);
    let power = |energy: fn(&RunSums) -> MicroJoules| {
        let figure = |value| figures::figure(value, sums.label);
        let power = watts(energy(&now), report.length_ns);
        format!("{} W now, {} J", figure(power), figure(energy(sums).joules()))
    };
    let style = if sums.label == Some(Label::Measured) { Style::Heading } else { Style::Warning };
    vec![
        Line::new(
            style,
            format!(
                "joular-bpf on {}: energy from {}, window {}, {:.1} s",
                run.host,
                source(run, sums.label),
                report.index,
                seconds(sums.elapsed_ns)
            ),
        ),
        Line::new(
            Style::Plain,
            format!("all domains {}   targets {}", power(|sums| sums.measured), power(|sums| sums.attributed)),
        ),
    ]
}

fn process_lines(totals: &Totals, report: &WindowReport, width: usize) -> Vec<Line> {
    let line = |pid: &str, title: &str, tally: &Tally| {
        let [watts, joules] = [watts(tally.energy_now, report.length_ns), tally.energy.joules()]
            .map(|value| figures::figure(value, totals.sums.label));
        let percent = format!("{:.1}", percent(tally.cpu_ns_now, report.length_ns));
        let figures = cells(&PROCESS, [pid, &watts, &joules, &percent], width);
        let room = width.saturating_sub(figures.chars().count());
        Line::new(Style::Plain, format!("{figures}{}", cut(title, room, Keep::Name)))
    };
    let ranked = totals.processes.ranked();
    let named = ranked
        .into_iter()
        .map(|(process, tally)| line(&process.pid.to_string(), &totals.title(process).to_string(), tally));
    named.chain(totals.processes.evicted().map(|tally| line("", EVICTED, tally))).collect()
}

fn method_lines(totals: &Totals, report: &WindowReport, width: usize, count: usize) -> Vec<Line> {
    let (intervals, label) = (totals.sampling.intervals(), totals.sums.label);
    let line = |(joules, interval): (String, String), tally: &Tally, name: &str| {
        let watts = figures::figure(watts(tally.energy_now, report.length_ns), label);
        let share = format!("{:.1}%", share(tally.energy, totals.sums.attributed));
        let figures = cells(&METHOD, [&joules, &interval, &watts, &share], width);
        let room = width.saturating_sub(figures.chars().count());
        Line::new(Style::Plain, format!("{figures}{}", cut(name, room, Keep::Name)))
    };
    let named = totals.methods.named(count).into_iter().map(|(name, key, tally)| {
        let interval = intervals.of(key, tally.energy).joules();
        line(figures::with_interval(tally.energy.joules(), interval, label), tally, &name.to_string())
    });
    let evicted = totals.methods.evicted().map(|tally| {
        let joules = figures::figure(tally.energy.joules(), label);
        line((joules, String::new()), tally, EVICTED)
    });
    named.chain(evicted).take(count).collect()
}

/// The footer: how much is not known, and what was lost.
fn footer(totals: &Totals) -> Vec<Line> {
    let sums = &totals.sums;
    let part = |energy| share(energy, sums.attributed);
    let mut lines = vec![Line::new(
        Style::Plain,
        format!(
            "without a name {:.1} %, of it [unresolved] {:.1} %, [no sample] {:.1} %",
            part(totals.unresolved()),
            part(totals.marker(Marker::Unresolved)),
            part(totals.marker(Marker::NoSample))
        ),
    )];
    if let Some(all) = totals.jvms.all() {
        let (tax, percent) = (all.tax.joules(), all.tax_percent());
        lines.push(Line::new(
            Style::Plain,
            format!("VM tax {} J, {percent:.1} % of the JVMs': {}", figures::figure(tax, sums.label), all.tax_parts()),
        ));
    }
    let quality = totals.jvms.quality_lines();
    if !quality.is_empty() {
        // What each cause means is in the summary.
        let causes: Vec<&str> = quality.iter().filter_map(|line| line.split(':').next()).collect();
        lines.push(Line::new(Style::Plain, format!("JVMs' stacks {}", causes.join(", "))));
    }
    if sums.label == Some(Label::Modelled) {
        lines.push(Line::new(
            Style::Plain,
            "intervals cover sampling only; the model's error is not known, likely larger",
        ));
    }
    lines.extend(warnings(sums).into_iter().map(|text| Line::new(Style::Warning, text)));
    lines
}

/// One window as one line, for logs.
pub fn line(run: &RunInfo, totals: &Totals, report: &WindowReport) -> String {
    let now = RunSums::of(report);
    let top = totals.methods.top_now().map_or_else(String::new, |(name, tally)| {
        format!("  top {name} {:.1} %", share(tally.energy_now, now.attributed))
    });
    let ambiguous = if now.ambiguous > 0 { " ambiguous" } else { "" };
    let figure = |value| figures::figure(value, totals.sums.label);
    format!(
        "{}  {} W{ambiguous} from {}  {} J so far  targets {} W{top}  without a name {:.1} %  lost {}\n",
        time(report.wall_start),
        figure(watts(now.measured, report.length_ns)),
        source(run, totals.sums.label),
        figure(totals.sums.measured.joules()),
        figure(watts(now.attributed, report.length_ns)),
        share(totals.unresolved(), totals.sums.attributed),
        now.lost(),
    )
}

/// UTC time of a moment, to the millisecond.
fn time(moment: UnixMicros) -> String {
    Timestamp::from_microsecond(moment.0)
        .map_or_else(|_| format!("{moment} µs"), |moment| moment.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string())
}

#[cfg(test)]
mod tests {
    use joular_data::{
        fixture::{self, BUSY, SMALL},
        stacks::StackTable,
    };
    use unicode_width::UnicodeWidthStr;

    use super::{super::snapshot::check_snapshot, *};

    fn totals(windows: u64, load: fixture::Load) -> (Totals, WindowReport) {
        let mut totals = Totals::default();
        let mut stacks = StackTable::default();
        let mut last = WindowReport::default();
        totals.process(&fixture::process(0));
        for index in 0..windows {
            last = fixture::window(load, &mut stacks, index);
            totals.window(&last, &stacks);
        }
        (totals, last)
    }

    fn text(size: Size) -> String {
        let (totals, report) = totals(2, SMALL);
        let lines = lines(&fixture::run(), &totals, &report, size, 20);
        lines.iter().map(|line| line.draw(false) + "\n").collect()
    }

    #[test]
    fn the_table_shows_power_energy_share_and_quality() {
        check_snapshot("live.txt", &text(Size::new(80, 24)));
    }

    #[test]
    fn the_table_fits_any_terminal() {
        let (totals, report) = totals(3, BUSY);
        for size in [Size::new(1, 1), Size::new(5, 3), Size::new(40, 10), Size::new(80, 24), Size::new(300, 100)] {
            let lines = lines(&fixture::run(), &totals, &report, size, 20);
            assert!(lines.len() < size.height.max(2), "{size:?}");
            assert!(lines.iter().all(|line| line.text.width() <= size.width), "{size:?}");
        }
    }

    #[test]
    fn the_user_says_how_many_methods_are_shown() {
        let (totals, report) = totals(2, BUSY);
        for (height, top, expected) in [(60, 7, 7), (300, 80, 80), (24, 1000, 8)] {
            let lines = lines(&fixture::run(), &totals, &report, Size::new(120, height), top);
            let methods = lines.iter().skip_while(|line| !line.text.contains("METHOD")).skip(1);
            assert_eq!(methods.take_while(|line| !line.text.is_empty()).count(), expected, "{height} {top}");
        }
    }

    #[test]
    fn a_small_terminal_shows_a_method_with_its_energy() {
        for (totals, report) in [totals(3, BUSY), totals(2, SMALL)] {
            for (width, height) in [(40, 12), (30, 12), (40, 8), (80, 10), (200, 4)] {
                let lines = lines(&fixture::run(), &totals, &report, Size::new(width, height), 20);
                assert!(lines.len() < height && lines[0].text.starts_with("joular-bpf"), "{width} {height}: {lines:?}");
                let mut methods = lines.iter().skip_while(|line| !line.text.contains("METHOD")).skip(1);
                let method = methods.next().unwrap_or_else(|| panic!("no method at {width} {height}: {lines:?}"));
                let (joules, name) = method.text.trim_start().split_once(' ').unwrap();
                assert!(joules.parse::<f64>().is_ok() && name.trim().width() >= 10, "{width} {height}: {method:?}");
            }
        }
    }

    #[test]
    fn figures_go_where_names_have_no_room_and_the_first_stays() {
        for (width, expected) in [
            (80, "        J   95 % FROM–TO         W   SHARE  "),
            (60, "        J         W   SHARE  "),
            (45, "        J   SHARE  "),
            (10, "        J  "),
        ] {
            assert_eq!(cells(&METHOD, METHOD.map(|(heading, ..)| heading), width), expected, "{width}");
        }
    }

    #[test]
    fn hostile_names_stay_text() {
        let mut run = fixture::run();
        run.host = "\x1b]0;title\x07".into();
        let (totals, report) = totals(1, SMALL);
        let table = lines(&run, &totals, &report, Size::DEFAULT, 20);
        assert!(table.iter().all(|line| !line.text.contains('\x1b')));
        assert!(!line(&run, &totals, &report).contains('\x1b'));
    }

    #[test]
    fn colours_only_where_they_are_wanted() {
        let heading = Line::new(Style::Heading, "a");
        assert_eq!(heading.draw(false), "a");
        assert_eq!(heading.draw(true), "\x1b[1ma\x1b[0m");
    }
}
