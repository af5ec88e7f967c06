//! Understands parameters of a command: `jdk=17,21,25`, or a range of numbers such as `n=1000..1000000:log:12`.

/// More values than this are a mistake.
const MAX_VALUES: usize = 1000;
/// Whole numbers up to here are exact as `f64`.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

/// A parameter, whose name stands in braces in the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    pub name: String,
    /// At least one, all different.
    pub values: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    #[error("'{0}' is not NAME=VALUES: write e.g. jdk=17,21 or n=1000..1000000:log:12")]
    Shape(String),
    #[error("'{0}' is not a name: use letters, digits, _ and -")]
    Name(String),
    #[error(
        "'{0}' is not a range: write FROM..TO for whole numbers, FROM..TO:step:S, FROM..TO:lin:COUNT or FROM..TO:log:COUNT"
    )]
    Range(String),
    #[error("{name} has no value, or one of them is empty")]
    Empty { name: String },
    #[error("{name} has the value {value} twice")]
    Twice { name: String, value: String },
    #[error("{name} has more than {MAX_VALUES} values")]
    Many { name: String },
}

impl Parameter {
    /// # Errors
    /// If the text is not `NAME=VALUES`.
    pub fn parse(text: &str) -> Result<Self, ParameterError> {
        let (name, values) = text.split_once('=').ok_or_else(|| ParameterError::Shape(text.to_owned()))?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(ParameterError::Name(name.to_owned()));
        }
        // A list may have `..` in it, too: paths have.
        let begins_with_number =
            |text: &str| text.split("..").next().is_some_and(|from| from.trim().parse::<f64>().is_ok());
        let values = match values.contains("..") && begins_with_number(values) {
            true => range(name, values)?,
            false => values.split(',').map(|value| value.trim().to_owned()).collect(),
        };
        if values.iter().any(String::is_empty) {
            return Err(ParameterError::Empty { name: name.to_owned() });
        }
        if values.len() > MAX_VALUES {
            return Err(ParameterError::Many { name: name.to_owned() });
        }
        let twice = values.iter().enumerate().find(|(at, value)| values[..*at].contains(value));
        match twice {
            Some((_, value)) => Err(ParameterError::Twice { name: name.to_owned(), value: value.clone() }),
            None => Ok(Self { name: name.to_owned(), values }),
        }
    }

    /// As numbers, if all are: a sweep fits energy against them.
    pub fn numbers(&self) -> Option<Vec<f64>> {
        let number = |value: &String| value.parse::<f64>().ok().filter(|number| number.is_finite());
        self.values.iter().map(number).collect()
    }
}

/// The values of `FROM..TO`, perhaps with `:step:S`, `:lin:COUNT` or `:log:COUNT`.
fn range(name: &str, text: &str) -> Result<Vec<String>, ParameterError> {
    let wrong = || ParameterError::Range(text.to_owned());
    let (ends, how) = text.split_once(':').map_or((text, None), |(ends, how)| (ends, Some(how)));
    let (from, to) = ends.split_once("..").ok_or_else(wrong)?;
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.abs() <= MAX_WHOLE);
    let (from, to) = (number(from).ok_or_else(wrong)?, number(to).ok_or_else(wrong)?);
    let is_whole = from.fract() == 0.0 && to.fract() == 0.0;
    let (kind, amount) = how.map_or(Some(("step", "1")), |how| how.split_once(':')).ok_or_else(wrong)?;
    let amount = number(amount).filter(|amount| *amount > 0.0).ok_or_else(wrong)?;
    if to < from || (how.is_none() && !is_whole) {
        return Err(wrong());
    }
    let is_count = amount.fract() == 0.0 && amount >= 2.0;
    let spaced = |at: fn(f64, f64, f64) -> f64| -> Result<Vec<f64>, ParameterError> {
        let count = counted(amount).ok_or_else(|| ParameterError::Many { name: name.to_owned() })?;
        Ok((0..count).map(|index| at(from, to, f64::from(index) / (amount - 1.0))).collect())
    };
    let values = match kind {
        "step" => {
            let steps = ((to - from) / amount + 1e-9).floor();
            let steps = counted(steps).ok_or_else(|| ParameterError::Many { name: name.to_owned() })?;
            (0..=steps).map(|step| f64::from(step).mul_add(amount, from)).collect()
        }
        "lin" if is_count => spaced(|from, to, part| part.mul_add(to - from, from))?,
        "log" if is_count && from > 0.0 => spaced(|from, to, part| from * (to / from).powf(part))?,
        _ => return Err(wrong()),
    };
    let is_whole = is_whole && (kind != "step" || amount.fract() == 0.0);
    let mut texts: Vec<String> = values.into_iter().map(|value| shown(value, is_whole)).collect();
    // Whole numbers that are near each other may be the same.
    texts.dedup();
    Ok(texts)
}

/// As a count that is not too large.
fn counted(number: f64) -> Option<u32> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and MAX_VALUES")]
    (0.0..=1000.0).contains(&number).then_some(number as u32)
}

/// Six significant digits are enough for a value that nobody wrote.
fn shown(value: f64, is_whole: bool) -> String {
    if is_whole {
        return format!("{:.0}", value.round());
    }
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        Parameter::parse(text).unwrap().values
    }

    #[test]
    fn values_are_listed_or_in_a_range() {
        assert_eq!(values("jdk=17,21, 25"), ["17", "21", "25"]);
        assert_eq!(values("n=10..13"), ["10", "11", "12", "13"]);
        assert_eq!(values("n=0..100:step:25"), ["0", "25", "50", "75", "100"]);
        assert_eq!(values("p=0..1:step:0.25"), ["0", "0.25", "0.5", "0.75", "1"]);
        assert_eq!(values("n=0..1000:lin:3"), ["0", "500", "1000"]);
        assert_eq!(values("n=1000..1000000:log:4"), ["1000", "10000", "100000", "1000000"]);
        assert_eq!(values("n=1..4:log:9"), ["1", "2", "3", "4"], "whole numbers are not repeated");
        assert_eq!(Parameter::parse("n=1,2.5").unwrap().numbers(), Some(vec![1.0, 2.5]));
        assert_eq!(Parameter::parse("gc=G1,ZGC").unwrap().numbers(), None);
    }

    #[test]
    fn what_is_no_parameter_is_told() {
        for (text, expected) in [
            ("n", "'n' is not NAME=VALUES"),
            ("=1", "'' is not a name"),
            ("a b=1", "'a b' is not a name"),
            ("n=", "n has no value"),
            ("n=1,,2", "n has no value, or one"),
            ("n=1,2,1", "n has the value 1 twice"),
            ("n=5..1", "'5..1' is not a range"),
            ("n=0..10:log:3", "'0..10:log:3' is not a range"),
            ("n=1..10:log:1", "'1..10:log:1' is not a range"),
            ("n=1..10:half:2", "'1..10:half:2' is not a range"),
            ("n=0.5..2", "'0.5..2' is not a range"),
            ("n=1..inf", "'1..inf' is not a range"),
            ("n=1..1000000", "n has more than 1000 values"),
            ("n=1..9:log:1e9", "n has more than 1000 values"),
        ] {
            let error = Parameter::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }
}
