//! Plays back the readings of a recorded run: those of another machine's meters, or of this one's
//! at another time, for a run without meters.
//!
//! The k-th read of this run gives the k-th recorded reading; the first is the starting point of
//! both. Nothing is adapted to this run's clock. Counters give the recorded energy of a window
//! whatever this window's length is, and count as a jump where that is more than their domain can
//! draw in it. Powers are integrated over this run's time, and models take this run's load.
//! Everything carries [`Label::Replayed`]: it is not this machine's energy.
//!
//! The file may be anyone's. Only its readings are kept, at most a million.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use joular_data::{
    events::{
        Event, RunInfo,
        recording::{RecordingError, RecordingReader},
    },
    model::{
        domain::{Domain, FaultCause, Label, Reading, Role, plain_name},
        target_text::TargetText,
    },
};
use thiserror::Error;

use super::{Adds, EnergyOptions, EnergySource, Opened, SourceKind, Unusable, UnusableKind};

/// Name of this source in `--energy` and in data sets.
pub const NAME: &str = "replay";

/// What [`super::SOURCES`] has of it.
pub const KIND: SourceKind = SourceKind {
    name: NAME,
    measures: "nothing: plays back the readings of the recording that --energy-file names",
    permission: "to read the file",
    adds: Adds::Never,
    open,
};

/// Two domains read once a second for almost six days.
const MAX_READINGS: usize = 1_000_000;

/// Most characters that are kept of a recorded fault's text.
const MAX_FAULT_CHARACTERS: usize = 200;

fn open(options: &EnergyOptions) -> Result<Opened, Unusable> {
    let path = options.file.as_ref().ok_or_else(|| {
        Unusable::new(UnusableKind::NotAsked, "no recording to play back: name it with --energy-file PATH")
    })?;
    let opened = open_file(path).map_err(ReplayError::Io).and_then(|file| Replay::read_from(file, MAX_READINGS));
    let (replay, host) = opened.map_err(|error| {
        let text = format!("playing back {}: {error}: check --energy-file", path.display());
        Unusable::new(error.kind(), text)
    })?;
    let basis = format!("{} readings recorded on {host}", replay.readings.len());
    Ok(Opened::new(replay, basis, "as recorded"))
}

/// Why a file cannot be played back.
#[derive(Debug, Error)]
enum ReplayError {
    #[error("{0}")]
    Io(io::Error),
    #[error(transparent)]
    Recording(#[from] RecordingError),
    #[error("it has no energy readings")]
    Empty,
    #[error("it has more than {0} energy readings")]
    TooMany(usize),
    #[error("reading {number} does not match the {domains} domains that it names")]
    OtherDomains { number: usize, domains: usize },
    #[error("its domain {0} refers to a domain that it does not name")]
    NoSuchDomain(usize),
}

impl ReplayError {
    fn kind(&self) -> UnusableKind {
        match self {
            Self::Io(cause) if cause.kind() == io::ErrorKind::PermissionDenied => UnusableKind::Denied,
            _ => UnusableKind::Broken,
        }
    }
}

/// Opening a pipe would wait for its writer.
fn open_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a regular file")) }
}

/// A recording's readings, and where this run is in them.
#[derive(Debug)]
struct Replay {
    domains: Vec<Domain>,
    readings: std::vec::IntoIter<Vec<Reading>>,
}

impl Replay {
    /// All readings of a recording, and the host that made it. One that ends in
    /// the middle, as a crash leaves it, is played as far as it goes.
    fn read_from(input: impl io::Read, most: usize) -> Result<(Self, TargetText), ReplayError> {
        let (mut domains, mut host, mut readings) = (Vec::new(), TargetText::default(), Vec::new());
        for event in RecordingReader::new(input)? {
            match event {
                // A run starts once; what else a file says does not count.
                Ok(Event::RunStarted(run)) if domains.is_empty() => (domains, host) = (replayed(&run)?, run.host),
                Ok(Event::Energy(reading)) => {
                    let (number, domains) = (readings.len() + 1, domains.len());
                    if reading.readings.len() != domains {
                        return Err(ReplayError::OtherDomains { number, domains });
                    }
                    if number.saturating_mul(domains.max(1)) > most {
                        return Err(ReplayError::TooMany(most));
                    }
                    readings.push(reading.readings.into_iter().map(shortened).collect());
                }
                Ok(_) => {}
                Err(RecordingError::Truncated { .. }) => break,
                Err(error) => return Err(error.into()),
            }
        }
        if domains.is_empty() || readings.is_empty() {
            return Err(ReplayError::Empty);
        }
        Ok((Self { domains, readings: readings.into_iter() }, host))
    }
}

/// The domains of a run as this source has them.
fn replayed(run: &RunInfo) -> Result<Vec<Domain>, ReplayError> {
    let replayed = |(index, domain): (usize, &Domain)| {
        let whole = match domain.role {
            Role::Part { of } | Role::Check { of } => Some(of),
            Role::Shared | Role::Unshared => None,
        };
        let mut others = domain.less.iter().copied().chain(whole);
        if others.any(|other| other == index || other >= run.domains.len()) {
            return Err(ReplayError::NoSuchDomain(index));
        }
        // Names get into messages and onto terminals; a file's may be anything.
        let name = plain_name(&domain.name).unwrap_or_else(|| format!("domain{index}"));
        Ok(Domain { name, label: Label::Replayed, source: NAME.to_owned(), ..domain.clone() })
    };
    run.domains.iter().enumerate().map(replayed).collect()
}

fn shortened(reading: Reading) -> Reading {
    match reading {
        Reading::Failed(fault) => {
            let text: String = fault.text.chars().take(MAX_FAULT_CHARACTERS).collect();
            Reading::failed(fault.cause, format!("in the recorded run: {text}"))
        }
        reading => reading,
    }
}

impl EnergySource for Replay {
    fn name(&self) -> &'static str {
        NAME
    }

    fn domains(&self) -> &[Domain] {
        &self.domains
    }

    fn read(&mut self) -> Vec<Reading> {
        let over = || Reading::failed(FaultCause::Gone, "playing back a recording: it has ended: use a longer one");
        self.readings.next().unwrap_or_else(|| self.domains.iter().map(|_| over()).collect())
    }
}

#[cfg(test)]
mod tests {
    use joular_data::{
        attribution::counter::{Meters, SocketLoad, Usage},
        events::{EnergyReading, recording::RecordingWriter},
        model::{domain::Meter, units::MonotonicNs},
    };

    use super::*;
    use crate::energy::EnergyChoice;

    fn domain(name: &str) -> Domain {
        let meter = Meter::Counter { range_uj: 9, unit_uj: 1, max_watts: 1 };
        Domain::new(name, Some(0), "powercap", Label::Measured, meter)
    }

    fn energy(readings: Vec<Reading>) -> Event {
        Event::Energy(EnergyReading { read_at: MonotonicNs(0), readings })
    }

    fn counters(values: &[u64]) -> Event {
        energy(values.iter().copied().map(Reading::CounterUj).collect())
    }

    fn recording(domains: Vec<Domain>, events: &[Event]) -> Vec<u8> {
        let run = RunInfo { domains, ..joular_data::fixture::run() };
        let mut writer = RecordingWriter::new(Vec::new()).unwrap();
        writer.write(&Event::RunStarted(Box::new(run))).unwrap();
        events.iter().for_each(|event| writer.write(event).unwrap());
        writer.finish().unwrap()
    }

    fn replay(bytes: &[u8], most: usize) -> Result<Replay, ReplayError> {
        Replay::read_from(bytes, most).map(|(replay, _)| replay)
    }

    fn cause(reading: &Reading) -> Option<FaultCause> {
        match reading {
            Reading::Failed(fault) => Some(fault.cause),
            _ => None,
        }
    }

    #[test]
    fn readings_come_in_order_and_then_the_recording_is_over() {
        let fault = Reading::failed(FaultCause::Denied, "x".repeat(5000));
        let events = [counters(&[1, 2]), Event::StacksForgotten(vec![]), energy(vec![fault, Reading::PowerUw(3)])];
        let mut replay = replay(&recording(vec![domain("package"), domain("dram")], &events), 4).unwrap();
        assert_eq!(replay.read(), [Reading::CounterUj(1), Reading::CounterUj(2)]);
        let readings = replay.read();
        assert_eq!((cause(&readings[0]), &readings[1]), (Some(FaultCause::Denied), &Reading::PowerUw(3)));
        let Reading::Failed(fault) = &readings[0] else { panic!("{readings:?}") };
        assert_eq!(fault.text.len(), "in the recorded run: ".len() + MAX_FAULT_CHARACTERS);
        for _ in 0..2 {
            assert_eq!(replay.read().iter().map(cause).collect::<Vec<_>>(), [Some(FaultCause::Gone); 2]);
        }
    }

    #[test]
    fn domains_are_the_recorded_ones_under_another_label() {
        let part = Domain { role: Role::Part { of: 0 }, ..domain("core") };
        let rest = Domain { role: Role::Unshared, less: vec![0], ..domain("platform") };
        let replay = replay(&recording(vec![domain("package"), part, rest], &[counters(&[1, 2, 3])]), 9).unwrap();
        let shown: Vec<_> = replay.domains().iter().map(|domain| (domain.name.as_str(), domain.role)).collect();
        let expected = [("package", Role::Shared), ("core", Role::Part { of: 0 }), ("platform", Role::Unshared)];
        assert_eq!(shown, expected);
        for domain in replay.domains() {
            assert_eq!((domain.label, domain.source.as_str()), (Label::Replayed, NAME));
            assert_eq!(domain.meter, Meter::Counter { range_uj: 9, unit_uj: 1, max_watts: 1 });
        }
        assert_eq!(replay.domains()[2].less, [0]);
    }

    #[test]
    fn names_of_a_recording_are_cleaned_in_messages_too() {
        use crate::energy::combined::{CombinedSource, Take};
        let names = ["Package", "\u{1b}]0;x\u{7}", "gpu-nvidia0"];
        let replay = replay(&recording(names.map(domain).to_vec(), &[counters(&[1, 2, 3])]), 9).unwrap();
        let shown: Vec<_> = replay.domains().iter().map(|domain| domain.name.clone()).collect();
        assert_eq!(shown, ["package", "__0_x_", "gpu-nvidia0"]);
        let machine = self::replay(&recording(vec![domain("\u{1b}[2J machine")], &[counters(&[1])]), 9).unwrap();
        let overlap = CombinedSource::of(Box::new(replay)).add(Box::new(machine), Take::All).unwrap_err();
        assert_eq!((&*overlap.domain, &*overlap.earlier), ("__2j_machine", "package"));
    }

    #[test]
    fn windows_get_the_recorded_energy_and_models_this_runs_load() {
        let model = Domain { meter: Meter::BusyPower, ..domain("cpu") };
        let counter = Meter::Counter { range_uj: 999_999, unit_uj: 1, max_watts: 1 };
        let events = [(999_995, 7_000_000), (999_998, 7_000_000), (5, 8_000_000)]
            .map(|(uj, uw)| energy(vec![Reading::CounterUj(uj), Reading::BusyPowerUw(uw)]));
        let mut replay =
            replay(&recording(vec![Domain { meter: counter, ..domain("package") }, model], &events), 9).unwrap();
        let mut meters = Meters::new(replay.domains());
        meters.start(MonotonicNs(0), &replay.read());
        // The second window's counter wraps, as it did in the recorded run.
        for (window, expected) in [(1, [3, 3_500_000]), (2, [7, 4_000_000]), (3, [0, 0])] {
            let load = [SocketLoad { socket: 0, cpus: 2, busy_ns: 500_000_000 }];
            let deltas = meters.advance(
                MonotonicNs(window * 1_000_000),
                &replay.read(),
                1_000_000,
                &Usage { sockets: &load, ..Usage::default() },
            );
            assert_eq!(deltas.iter().map(|delta| delta.measured.0).collect::<Vec<_>>(), expected, "window {window}");
            assert_eq!(deltas[0].fault, (window == 3).then_some(FaultCause::Gone));
        }
    }

    #[test]
    fn what_cannot_be_played_is_refused() {
        let one = || vec![domain("package")];
        let dangling = |role, less| recording(vec![Domain { role, less, ..domain("x") }], &[counters(&[1])]);
        for (bytes, expected) in [
            (b"not a recording".to_vec(), "not a joular-bpf recording"),
            (Vec::new(), "not a joular-bpf recording"),
            (recording(one(), &[]), "no energy readings"),
            (recording(vec![], &[counters(&[])]), "no energy readings"),
            (recording(one(), &[counters(&[1]), counters(&[1, 2])]), "reading 2 does not match the 1 domains"),
            (recording(one(), &[counters(&[1]), counters(&[2]), counters(&[3])]), "more than 2 energy readings"),
            (dangling(Role::Part { of: 1 }, vec![]), "domain 0 refers to a domain that it does not name"),
            (dangling(Role::Check { of: 0 }, vec![]), "domain 0 refers"),
            (dangling(Role::Unshared, vec![usize::MAX]), "domain 0 refers"),
        ] {
            let message = replay(&bytes, 2).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}, not {expected}");
        }
    }

    #[test]
    fn a_recording_that_a_crash_cut_off_is_played_as_far_as_it_goes() {
        let window = || Event::Window(Box::default());
        let bytes = recording(vec![domain("package")], &[counters(&[1]), window(), counters(&[2]), window()]);
        let cut = bytes.get(..bytes.len() - 12).unwrap();
        let mut replay = replay(cut, 9).unwrap();
        assert_eq!(replay.read(), [Reading::CounterUj(1)]);
    }

    #[test]
    fn the_file_is_named_by_energy_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.jrec");
        std::fs::write(&path, recording(vec![domain("package")], &[counters(&[1])])).unwrap();
        let opened = |file: Option<&Path>| {
            open(&EnergyOptions {
                choice: EnergyChoice::These(vec![NAME]),
                sys_root: directory.path().into(),
                proc_root: directory.path().into(),
                powercap_root: directory.path().into(),
                file: file.map(Into::into),
                ..EnergyOptions::default()
            })
        };
        assert!(opened(Some(&path)).unwrap().basis.starts_with("1 readings recorded on "));
        let absent = directory.path().join("absent");
        let kind = |file| opened(file).err().map(|error| error.kind);
        assert_eq!(kind(None), Some(UnusableKind::NotAsked));
        assert_eq!(kind(Some(&absent)), Some(UnusableKind::Broken), "it was named");
        assert_eq!(kind(Some(directory.path())), Some(UnusableKind::Broken));
    }

    proptest::proptest! {
        #[test]
        fn a_damaged_recording_never_panics(at in 0_usize..400, byte: u8) {
            let mut bytes = recording(vec![domain("package")], &[counters(&[1]), counters(&[2])]);
            if let Some(place) = bytes.get_mut(at) {
                *place ^= byte;
            }
            let _ = replay(&bytes, 10).map(|mut replay| replay.read());
        }
    }
}
