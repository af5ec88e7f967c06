//! Resolves what a sweep runs, and what is fitted.

use joular_data::report::diff::View;

use super::{ConfigError, experiment};
use crate::{
    cli::{RunFlags, SweepFlags},
    experiment::{conduct::Experiment, parameter::Parameter},
};

/// Methods that people see unless they say how many.
const METHODS: usize = 10;
/// Values with fewer runs show no noise.
const REPEAT: u32 = 3;

/// An experiment whose variants are the values of one parameter.
#[derive(Clone, Debug)]
pub struct SweepRun {
    pub experiment: Experiment,
    /// The value of each variant.
    pub values: Vec<f64>,
    pub view: View,
    /// Methods to show; `None`: all.
    pub methods: Option<usize>,
}

/// # Errors
/// If a flag cannot be understood.
pub fn sweep(flags: &SweepFlags) -> Result<SweepRun, ConfigError> {
    let given = &flags.run.experiment;
    let ([parameter], []) = (given.parameter.as_slice(), given.variant.as_slice()) else {
        return Err(invalid("parameter", "a sweep has exactly one parameter and no variants: n=1000..1000000:log:12"));
    };
    for (name, path) in [("export-latex", &given.export_latex), ("export-methods", &given.export_methods)] {
        if path.is_some() {
            return Err(invalid(name, "it is of `run` only: use --export-markdown, --export-plot or --html"));
        }
    }
    let parsed = Parameter::parse(parameter).map_err(|error| invalid("parameter", &error.to_string()))?;
    let values = parsed.numbers().ok_or_else(|| invalid("parameter", "all values of a sweep are numbers"))?;
    let mut run: RunFlags = flags.run.clone();
    if run.experiment.until_interval.is_none() {
        run.experiment.repeat.get_or_insert(REPEAT);
    }
    let view = match flags.view.as_deref() {
        None | Some("self") => View::Itself,
        Some("total") => View::Total,
        Some(other) => return Err(invalid("view", &format!("'{other}' is not one of self, total"))),
    };
    let top =
        flags.run.flags.top.map(usize::try_from).transpose().map_err(|error| invalid("top", &error.to_string()))?;
    let methods = Some(flags.methods.or(top).unwrap_or(METHODS)).filter(|count| *count > 0);
    Ok(SweepRun { experiment: experiment(&run)?, values, view, methods })
}

fn invalid(place: &str, cause: &str) -> ConfigError {
    ConfigError::Invalid { place: format!("--{place}"), cause: cause.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{self, Command};

    fn resolved(options: &[&str]) -> Result<SweepRun, ConfigError> {
        let words = [&["joular-bpf", "sweep"][..], options, &["--", "sort", "{n}"]].concat();
        match cli::parse(words.into_iter().map(Into::into)).unwrap().command {
            Some(Command::Sweep(flags)) => sweep(&flags),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn variants_of_a_sweep_are_the_values_of_its_parameter() {
        let found = resolved(&["--parameter", "n=10,20,40"]).unwrap();
        assert_eq!((found.values, found.experiment.repeat, found.methods), (vec![10.0, 20.0, 40.0], 3, Some(10)));
        let names: Vec<&str> = found.experiment.variants.iter().map(|variant| variant.name.as_str()).collect();
        assert_eq!(names, ["n=10", "n=20", "n=40"]);
        for (options, expected) in [
            (["--top", "0"], None),
            (["--top", "3"], Some(3)),
            (["--methods", "0"], None),
            (["--methods", "3"], Some(3)),
        ] {
            let found = resolved(&[&["--parameter", "n=1..4", "--repeat", "5"][..], &options].concat()).unwrap();
            assert_eq!(found.methods, expected, "{options:?}");
        }
        let open = resolved(&["--parameter", "n=1..4", "--until-interval", "2"]).unwrap().experiment;
        assert_eq!((open.repeat, open.until.map(|until| until.min_runs)), (100, Some(10)));
    }

    #[test]
    fn what_is_no_sweep_is_told() {
        for (options, expected) in [
            (&[][..], "exactly one parameter"),
            (&["--parameter", "n=1..4", "--parameter", "m=1..4"], "exactly one parameter"),
            (&["--parameter", "n=a,b"], "all values of a sweep are numbers"),
            (&["--parameter", "n=1..4", "--view", "all"], "'all' is not one of"),
            (&["--parameter", "n=1..4", "--export-latex", "a.tex"], "--export-latex: it is of `run` only"),
            (&["--parameter", "n=1..4", "--export-methods", "a.md"], "--export-methods: it is of `run` only"),
        ] {
            let error = resolved(options).unwrap_err().to_string();
            assert!(error.contains(expected), "{options:?}: {error}");
        }
    }
}
