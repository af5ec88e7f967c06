//! Says what holds for a question, whoever asks it: the moment, what may be seen, and how much.

use std::{path::Path, time::Duration};

use hyper::StatusCode;
use joular_data::{
    dataset::DataSetError,
    model::units::UnixMicros,
    report::profile::{Filter, Listed, Moment},
    text::escape,
};

use crate::{config::Sight, query::Refusal};

/// How long what a bucket has is known: listing it costs requests.
pub const LISTED: Duration = Duration::from_secs(30);

/// The time that a question about a bucket is about if it does not say where that begins.
pub const SPAN: Duration = Duration::from_secs(3600);

/// What a question is asked under.
#[derive(Clone, Debug)]
pub struct Terms {
    pub now: UnixMicros,
    /// The length of what a question is about that does not say where it begins; `None`: all.
    pub span: Option<Duration>,
    /// Of a flame graph.
    pub most_nodes: usize,
    pub sight: Sight,
}

/// What a path reads of the data set, beside the parts that its question names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    Parts,
    /// The rows of all runs.
    Rows,
    /// All of it.
    Everything,
}

impl Terms {
    /// The same filter, with what may be seen and where it begins. Returns that if the question did not say it.
    pub fn limit(&self, filter: &mut Filter) -> Option<UnixMicros> {
        filter.access = self.sight.access.clone();
        let span = self.span.filter(|_| filter.since.is_none())?;
        let end = match filter.until {
            Some(Moment::At(until)) => until,
            _ => self.now,
        };
        let begin = UnixMicros(end.0.saturating_sub(i64::try_from(span.as_micros()).unwrap_or(i64::MAX)));
        filter.since = Some(Moment::At(begin));
        Some(begin)
    }

    /// # Errors
    /// If nothing may be seen, or only a part of what a path reads.
    pub fn check(&self, reads: Reads, parts: &[Filter]) -> Result<(), Refusal> {
        let forbidden = |message: &str| {
            Err(Refusal { status: StatusCode::FORBIDDEN, code: "forbidden", message: message.to_owned() })
        };
        let access = &self.sight.access;
        if access.is_everything() {
            Ok(())
        } else if access.is_nothing() {
            forbidden("no rule of this server lets you see anything: ask those who run it")
        } else if reads != Reads::Parts || parts.is_empty() {
            forbidden("this is about the whole data set, of which you may see a part")
        } else {
            Ok(())
        }
    }

    /// A failure as whoever asks may know it: messages about files name hosts and runs.
    pub fn told(&self, refusal: Refusal) -> Refusal {
        let is_own = [StatusCode::BAD_REQUEST, StatusCode::FORBIDDEN, StatusCode::NOT_FOUND].contains(&refusal.status);
        let is_of_server = ["too_long", "too_much", "busy", "ended"].contains(&refusal.code);
        if self.sight.access.is_everything() || is_own || is_of_server {
            return refusal;
        }
        let message = "reading the data set failed: those who may see all of it are told why";
        Refusal { message: message.to_owned(), ..refusal }
    }
}

impl Reads {
    /// The files that are read.
    ///
    /// # Errors
    /// If they cannot be listed, or have more than `most` bytes.
    pub fn listed(self, place: &Path, parts: &[Filter], most: Option<u64>) -> Result<Listed, Refusal> {
        const TEN_MIB: u64 = 10 << 20;
        let listed = match self {
            Self::Rows => Listed::of_rows(place),
            Self::Parts if !parts.is_empty() => Listed::of(place, parts),
            // Of what names no part nothing less is known.
            Self::Parts | Self::Everything => Listed::of(place, [&Filter::default()]),
        };
        let too_much = |message| Refusal { status: StatusCode::PAYLOAD_TOO_LARGE, code: "too_much", message };
        let listed = listed.map_err(|error| match error {
            DataSetError::TooManyFiles { most, .. } => {
                too_much(format!("this question is about more than {most} files: ask for less time (from, until)"))
            }
            error => Refusal::later("data_set", format!("listing the data set: {}", escape(&error.to_string()))),
        })?;
        let Some(most) = most.filter(|most| listed.bytes > *most) else { return Ok(listed) };
        let size = |bytes: u64| match bytes {
            ..TEN_MIB => format!("{} KiB", bytes.div_ceil(1 << 10)),
            _ => format!("{} MiB", bytes.div_ceil(1 << 20)),
        };
        let (has, may) = (size(listed.bytes), size(most));
        let advice = match self {
            Self::Parts => "ask for less time (from, until) or fewer hosts (host)",
            Self::Rows | Self::Everything => "it is about the whole data set: ask joular-bpf runs or audit instead",
        };
        let files = listed.files;
        Err(too_much(format!("this question reads {files} files of {has}, and --scan allows {may}: {advice}")))
    }
}

#[cfg(test)]
mod tests {
    use joular_data::report::profile::{Access, Allowance};

    use super::*;

    const NOW: UnixMicros = UnixMicros(1_772_409_600_000_000);
    const HOUR_US: i64 = 3_600_000_000;

    fn terms(span: Option<Duration>, access: Access) -> Terms {
        Terms { now: NOW, span, most_nodes: 1, sight: Sight { access, key: String::new() } }
    }

    #[test]
    fn what_does_not_say_where_it_begins_is_the_last_hour_of_it() {
        let at = |us: i64| Some(Moment::At(UnixMicros(us)));
        let clock = Some(Moment::Clock(5));
        for (span, since, until, expected) in [
            (Some(SPAN), None, None, Some(NOW.0 - HOUR_US)),
            (Some(SPAN), None, at(2 * HOUR_US), Some(HOUR_US)),
            (Some(SPAN), None, clock, Some(NOW.0 - HOUR_US)),
            (Some(SPAN), at(0), None, None),
            (Some(SPAN), clock, at(5), None),
            (None, None, None, None),
        ] {
            let mut filter = Filter { since, until, ..Filter::default() };
            let begin = terms(span, Access::default()).limit(&mut filter);
            assert_eq!(begin.map(|begin| begin.0), expected, "{since:?} {until:?}");
            assert_eq!(filter.since, begin.map(Moment::At).or(since));
            assert_eq!(filter.until, until);
        }
    }

    #[test]
    fn who_may_see_a_part_gets_parts_only_and_no_names_of_files() {
        let part = Access::of([Allowance::default()]);
        let parts = [Filter::default()];
        for (access, reads, parts, is_allowed) in [
            (Access::default(), Reads::Everything, &[][..], true),
            (Access::default(), Reads::Parts, &[], true),
            (part.clone(), Reads::Parts, &parts, true),
            (part.clone(), Reads::Parts, &[], false),
            (part.clone(), Reads::Rows, &parts, false),
            (part.clone(), Reads::Everything, &parts, false),
            (Access::of([]), Reads::Parts, &parts, false),
        ] {
            let checked = terms(None, access).check(reads, parts);
            assert_eq!(checked.map_err(|refusal| refusal.status.as_u16()), if is_allowed { Ok(()) } else { Err(403) });
        }
        let failure = Refusal::broken("reading runs/host=secret".to_owned());
        assert_eq!(terms(None, Access::default()).told(failure.clone()), failure);
        assert!(!terms(None, part).told(failure).message.contains("secret"));
    }
}
