//! Resolves from flags of what emissions and cost are made.

use std::path::Path;

use joular_data::report::footprint::{
    Carbon, Choices, Embodied, Intensity, MOST_G_PER_KWH, Method, Price, factors::Factors,
};

use super::ConfigError;
use crate::cli::FootprintFlags;

/// More than any building has.
const MOST_PUE: f64 = 10.0;

/// 1 000 t, more than any host.
const MOST_HOST_G: f64 = 1e9;

const MOST_YEARS: f64 = 100.0;

/// Of a kilowatt-hour, in any currency.
const MOST_PRICE: f64 = 1e9;

const MAX_CURRENCY_CHARS: usize = 16;

/// `None`: no flag asks for any of it. Reads the file of factors, if there is one.
///
/// # Errors
/// If a flag or a line of the file cannot be understood.
pub fn footprint(flags: &FootprintFlags) -> Result<Option<Choices>, ConfigError> {
    let carbon = flags.carbon.as_deref().map(|text| carbon(text, flags)).transpose()?;
    choices(flags, carbon)
}

fn carbon(text: &str, flags: &FootprintFlags) -> Result<Carbon, ConfigError> {
    let intensity = match (per_kwh(text), &flags.zone) {
        (Some(_), Some(_)) => {
            let other = format!("--carbon {text}");
            let advice = "only a CSV file has zones";
            return Err(ConfigError::Conflict { place: "--zone".to_owned(), other, advice });
        }
        (Some(mass), None) => Intensity::GramsPerKwh(factor(text, mass)?),
        (None, zone) => {
            let factors = Factors::open(Path::new(text), zone.as_deref());
            Intensity::ByTime(factors.map_err(|error| invalid("--carbon", error.to_string()))?)
        }
    };
    let method = Method::ALL.into_iter().find(|method| flags.carbon_method.as_deref() == Some(method.name()));
    Ok(Carbon { intensity, source: flags.carbon_source.clone(), method })
}

fn choices(flags: &FootprintFlags, carbon: Option<Carbon>) -> Result<Option<Choices>, ConfigError> {
    let price = flags.price.as_deref().map(price).transpose()?;
    let is_wanted = carbon.is_some() || price.is_some();
    for (flag, is_given) in [("--pue", flags.pue.is_some()), ("--work", !flags.work.is_empty())] {
        if is_given && !is_wanted {
            return Err(invalid(flag, "it says nothing without --carbon or --price: add one".to_owned()));
        }
    }
    let pue = flags.pue.unwrap_or(1.0);
    if !(1.0..=MOST_PUE).contains(&pue) {
        return Err(invalid("--pue", format!("{pue} is not a PUE: give a ratio from 1 to {MOST_PUE}, such as 1.4")));
    }
    if let Some(count) = flags.work.iter().find(|count| !(count.is_finite() && **count > 0.0)) {
        return Err(invalid("--work", format!("{count} is not an amount of work: give a number above 0")));
    }
    let embodied = flags.embodied.as_deref().map(embodied).transpose()?;
    if let Some(cpus) = flags.reserved.filter(|cpus| !(cpus.is_finite() && *cpus > 0.0)) {
        return Err(invalid(
            "--reserved",
            format!("{cpus} is not a number of CPUs: give one above 0, such as 0.5 or 4"),
        ));
    }
    let (reserved_cpus, work) = (flags.reserved, flags.work.clone());
    Ok(is_wanted.then_some(Choices { carbon, pue, embodied, reserved_cpus, price, work }))
}

/// Of `250g/kWh`, what stands before the unit of energy.
fn per_kwh(text: &str) -> Option<&str> {
    let (amount, unit) = text.rsplit_once('/')?;
    unit.trim().eq_ignore_ascii_case("kwh").then_some(amount)
}

/// Grams per kilowatt-hour.
fn factor(text: &str, mass: &str) -> Result<f64, ConfigError> {
    let grams = grams(mass, &["g", "kg"]).filter(|grams| (0.0..=MOST_G_PER_KWH).contains(grams));
    let cause = format!("'{text}' is not a factor: write e.g. 250g/kWh or 0.25kg/kWh, at most {MOST_G_PER_KWH}g/kWh");
    grams.ok_or_else(|| invalid("--carbon", cause))
}

/// `1000kg/4y`.
fn embodied(text: &str) -> Result<Embodied, ConfigError> {
    let found = text.split_once('/').and_then(|(mass, years)| {
        let host_g = grams(mass, &["g", "kg", "t"]).filter(|grams| *grams <= MOST_HOST_G)?;
        let (years, unit) = amount(years)?;
        let is_lifetime = years > 0.0 && years <= MOST_YEARS && ["y", "a", "year", "years"].contains(&unit);
        is_lifetime.then_some(Embodied { host_g, lifetime_years: years })
    });
    let cause = format!(
        "'{text}' is not a mass over a lifetime: write e.g. 1000kg/4y, of more than 0 and at most {MOST_YEARS} years"
    );
    found.ok_or_else(|| invalid("--embodied", cause))
}

/// `0.30/kWh` or `0.30EUR/kWh`.
fn price(text: &str) -> Result<Price, ConfigError> {
    let is_in_name =
        |c: char| c == '$' || c == ' ' || !(c.is_ascii_punctuation() || c.is_control() || c.is_whitespace());
    let found = per_kwh(text).and_then(amount).filter(|(per_kwh, currency)| {
        *per_kwh <= MOST_PRICE && currency.chars().count() <= MAX_CURRENCY_CHARS && currency.chars().all(is_in_name)
    });
    let cause = format!("'{text}' is not a price: write e.g. 0.30/kWh or 0.30EUR/kWh");
    let (per_kwh, currency) = found.ok_or_else(|| invalid("--price", cause))?;
    Ok(Price { per_kwh, currency: currency.to_owned() })
}

/// Grams of CO₂ or what is equivalent to it, in one of these units.
fn grams(text: &str, units: &[&str]) -> Option<f64> {
    let (amount, unit) = amount(text)?;
    let lower = unit.to_ascii_lowercase();
    let of_gas = ["co2eq", "co2e", "co2", ""].iter().find_map(|gas| lower.strip_suffix(gas))?;
    let grams = match *units.iter().find(|unit| **unit == of_gas.trim_end())? {
        "t" => 1e6,
        "kg" => 1e3,
        _ => 1.0,
    };
    Some(amount * grams)
}

/// A number of digits and a point, and what follows it.
fn amount(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let number = number.parse::<f64>().ok().filter(|number| number.is_finite())?;
    Some((number, unit.trim()))
}

fn invalid(place: &str, cause: String) -> ConfigError {
    ConfigError::Invalid { place: place.to_owned(), cause }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(set: impl FnOnce(&mut FootprintFlags)) -> FootprintFlags {
        let mut flags = FootprintFlags::default();
        set(&mut flags);
        flags
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn factors_are_masses_per_kilowatt_hour() {
        for (text, expected) in [
            ("250g/kWh", 250.0),
            ("250gCO2e/kWh", 250.0),
            ("250 gCO2eq / kwh", 250.0),
            ("56.5 g CO2/kWh", 56.5),
            ("0.25kg/kWh", 250.0),
            ("0.25kgCO2e/KWH", 250.0),
            (".5g/kWh", 0.5),
            ("0g/kWh", 0.0),
        ] {
            let choices = footprint(&with(|flags| flags.carbon = some(text))).unwrap().unwrap();
            assert_eq!(choices.carbon.unwrap(), Carbon::plain(expected), "{text}");
            assert_eq!((choices.pue, choices.embodied, choices.price), (1.0, None, None));
        }
    }

    #[test]
    fn hosts_are_a_mass_over_a_lifetime_and_prices_have_any_currency_or_none() {
        for (text, host_g, lifetime_years) in [
            ("1000kg/4y", 1e6, 4.0),
            ("1.2t/5.5y", 1.2e6, 5.5),
            ("900 kgCO2e / 3 years", 9e5, 3.0),
            ("0kg/1y", 0.0, 1.0),
        ] {
            assert_eq!(embodied(text).unwrap(), Embodied { host_g, lifetime_years }, "{text}");
        }
        for (text, per_kwh, currency) in [
            ("0.30/kWh", 0.3, ""),
            ("0.30EUR/kWh", 0.3, "EUR"),
            ("12 ct/kWh", 12.0, "ct"),
            ("0.1$/kWh", 0.1, "$"),
            ("0.3€/kWh", 0.3, "€"),
        ] {
            assert_eq!(price(text).unwrap(), Price { per_kwh, currency: currency.to_owned() }, "{text}");
        }
    }

    #[test]
    fn nothing_is_computed_unless_it_is_asked_for() {
        assert_eq!(footprint(&FootprintFlags::default()).unwrap(), None);
        let cost = footprint(&with(|flags| flags.price = some("0.30/kWh"))).unwrap().unwrap();
        assert_eq!(cost.carbon, None);
    }

    #[test]
    fn a_file_is_read_by_its_zone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("factors.csv");
        let rows = "2026-03-01T12:00:00Z,FR,50\n2026-03-01T12:00:00Z,PL,700\n2026-03-01T13:00:00Z,FR,50\n";
        std::fs::write(&path, format!("time,zone,g/kWh\n{rows}")).unwrap();
        let flags = |zone| {
            with(|flags| {
                flags.carbon = path.to_str().map(ToOwned::to_owned);
                flags.zone = zone;
                flags.carbon_method = some("marginal");
            })
        };
        let carbon = footprint(&flags(some("FR"))).unwrap().unwrap().carbon.unwrap();
        assert_eq!(carbon.method, Some(Method::Marginal));
        assert!(matches!(carbon.intensity, Intensity::ByTime(factors) if factors.zone.as_deref() == Some("FR")));
        let message = footprint(&flags(None)).unwrap_err().to_string();
        assert!(message.contains("choose one with --zone: 'FR', 'PL'"), "{message}");
    }

    #[test]
    fn what_cannot_be_understood_is_named() {
        let carbon = |text: &str| with(|flags| flags.carbon = some(text));
        let host = |text: &str| with(|flags| (flags.carbon, flags.embodied) = (some("1g/kWh"), some(text)));
        let price = |text: &str| with(|flags| flags.price = some(text));
        let pue = |pue| with(|flags| (flags.carbon, flags.pue) = (some("1g/kWh"), Some(pue)));
        let reserved = |cpus| with(|flags| (flags.carbon, flags.reserved) = (some("1g/kWh"), Some(cpus)));
        let work = |work: &[f64]| with(|flags| (flags.carbon, flags.work) = (some("1g/kWh"), work.to_vec()));
        for (flags, expected) in [
            (carbon("250lb/kWh"), "--carbon: '250lb/kWh' is not a factor: write e.g. 250g/kWh"),
            (carbon("-250g/kWh"), "--carbon: '-250g/kWh' is not a factor"),
            (carbon("NaNg/kWh"), "--carbon: 'NaNg/kWh' is not a factor"),
            (carbon("infg/kWh"), "--carbon: 'infg/kWh' is not a factor"),
            (carbon("1.2.3g/kWh"), "--carbon: '1.2.3g/kWh' is not a factor"),
            (carbon("250/kWh"), "--carbon: '250/kWh' is not a factor"),
            (carbon("250kg/kWh"), "--carbon: '250kg/kWh' is not a factor"),
            (carbon("g/kWh"), "--carbon: 'g/kWh' is not a factor"),
            (carbon("250g"), "--carbon: opening 250g: "),
            (with(|flags| (flags.carbon, flags.zone) = (some("1g/kWh"), some("FR"))), "--zone cannot be used with"),
            (host("1000kg"), "--embodied: '1000kg' is not a mass over a lifetime: write e.g. 1000kg/4y"),
            (host("1000kg/0y"), "--embodied: '1000kg/0y'"),
            (host("1000kg/4"), "--embodied: '1000kg/4'"),
            (host("1000/4y"), "--embodied: '1000/4y'"),
            (host("-1kg/4y"), "--embodied: '-1kg/4y'"),
            (host("1000kg/-4y"), "--embodied: '1000kg/-4y'"),
            (host("NaNkg/4y"), "--embodied: 'NaNkg/4y'"),
            (host("99999999t/4y"), "--embodied: '99999999t/4y'"),
            (host("1kg/4000y"), "--embodied: '1kg/4000y'"),
            (price("0.30"), "--price: '0.30' is not a price: write e.g. 0.30/kWh"),
            (price("EUR/kWh"), "--price: 'EUR/kWh'"),
            (price("-0.1/kWh"), "--price: '-0.1/kWh'"),
            (price("0.1|/kWh"), "--price: '0.1|/kWh'"),
            (price("0.1<b>/kWh"), "--price: '0.1<b>/kWh'"),
            (price("0.1/MWh"), "--price: '0.1/MWh'"),
            (pue(0.9), "--pue: 0.9 is not a PUE: give a ratio from 1 to 10"),
            (pue(f64::NAN), "--pue: NaN is not a PUE"),
            (pue(11.0), "--pue: 11 is not a PUE"),
            (with(|flags| flags.pue = Some(1.4)), "--pue: it says nothing without --carbon or --price"),
            (work(&[1.0, 0.0]), "--work: 0 is not an amount of work"),
            (work(&[f64::INFINITY]), "--work: inf is not an amount of work"),
            (with(|flags| flags.work = vec![1.0]), "--work: it says nothing without"),
            (reserved(0.0), "--reserved: 0 is not a number of CPUs: give one above 0"),
            (reserved(f64::NAN), "--reserved: NaN is not a number of CPUs"),
        ] {
            let message = footprint(&flags).unwrap_err().to_string();
            assert!(message.starts_with(expected), "{message}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_understood_or_refused(text in "[-+.0-9a-zA-Z/€ ]{0,20}") {
            let _ = (factor(&text, &text), embodied(&text), price(&text));
        }
    }
}
