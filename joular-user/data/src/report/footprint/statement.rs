//! Says what emissions and cost are made of: energy, PUE, factor with its source and year, hardware, work,
//! and what is not in them.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Carbon, Embodied, Footprints, Intensity, Price, Reserved, factors::Origin, of_profile::UsedFactor};
use crate::{
    model::domain::Label,
    report::profile::Overview,
    text::{escape, figures, figures::Places, seconds},
};

/// Sources that are named one by one.
const SHOWN_ORIGINS: usize = 3;

/// A unit in which masses are easy to read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MassUnit {
    pub name: &'static str,
    grams: f64,
}

impl MassUnit {
    /// The unit of a mass in grams, and of those that it is the sum of.
    pub fn of(grams: f64) -> Self {
        let unit = |name, grams| Self { name, grams };
        match grams.abs() {
            grams if grams >= 1e6 => unit("t", 1e6),
            grams if grams >= 1e3 => unit("kg", 1e3),
            grams if grams >= 1.0 || grams == 0.0 => unit("g", 1.0),
            grams if grams >= 1e-3 => unit("mg", 1e-3),
            _ => unit("µg", 1e-6),
        }
    }

    /// A mass in this unit.
    pub fn amount(self, grams: f64) -> f64 {
        grams / self.grams
    }
}

fn mass(grams: f64) -> String {
    let unit = MassUnit::of(grams);
    format!("{} {}CO2e", rounded(unit.amount(grams)), unit.name)
}

fn rounded(value: f64) -> String {
    Places::derived(value, 0.0).write(value)
}

/// Lines for people; the first is a title.
pub fn text(footprints: &Footprints<'_>, overview: &Overview) -> Vec<String> {
    let choices = footprints.choices;
    let mut lines = vec![title(footprints, overview)];
    let mut line = |name: &str, text: String| lines.push(format!("{name}: {text}"));
    line("energy", format!("{} kWh", rounded(footprints.kwh())));
    if let (Some(carbon), Some(factor)) = (&choices.carbon, &footprints.factor) {
        line("factor", factor_text(carbon, factor));
        line("operational", mass(footprints.whole.operational_g));
    }
    if let Some(embodied) = &choices.embodied {
        line("embodied", embodied_text(footprints, embodied));
        line("total", mass(footprints.whole.grams()));
    }
    let work = footprints.work.unwrap_or_default();
    let without = if choices.embodied.is_none() { ", without embodied emissions" } else { "" };
    if let Some(grams) = footprints.grams_per_work() {
        line("per unit of work", format!("{}, of {work} units{without}", mass(grams)));
    }
    if let Some(reserved) = &footprints.reserved {
        line("reserved", reserved_text(reserved, overview, without));
    }
    if let Some(sci) = footprints.sci_g() {
        line("SCI", format!("{} per unit of work, of what is reserved{without}", mass(sci)));
    }
    if let Some(price) = &choices.price {
        line("cost", cost_text(footprints, price));
    }
    line("boundary", boundary(footprints, overview));
    lines
}

/// What the figures are of.
fn title(footprints: &Footprints<'_>, overview: &Overview) -> String {
    let what = match (&footprints.choices.carbon, &footprints.choices.price) {
        (Some(_), Some(_)) => "Emissions and cost",
        (None, Some(_)) => "Cost",
        _ => "Emissions",
    };
    let label = overview.label.map_or("no energy source", Label::words);
    let joules = figures::figure(footprints.energy.joules(), overview.label);
    let pue = match footprints.choices.pue {
        pue if pue > 1.0 => format!(", times the PUE {pue}; joules in tables are without it"),
        _ => ", without a PUE".to_owned(),
    };
    format!("{what} of the selection: {joules} J ({label}){pue}")
}

fn factor_text(carbon: &Carbon, factor: &UsedFactor) -> String {
    let mut text = match &carbon.intensity {
        Intensity::GramsPerKwh(figure) => format!("{figure} gCO2e/kWh"),
        Intensity::ByTime(factors) => {
            let zone = factors.zone.as_deref().map_or(String::new(), |zone| format!(", zone {}", escape(zone)));
            let mean = rounded(factor.mean_g_per_kwh);
            format!("{mean} gCO2e/kWh by energy, {} to {} by time{zone}", factor.min_g_per_kwh, factor.max_g_per_kwh)
        }
    };
    let method = carbon.method.map_or("not said whether average or marginal", super::Method::name);
    let shown: Vec<String> = factor.origins.iter().take(SHOWN_ORIGINS).map(origin_text).collect();
    let _ = write!(text, ", {method}; {}", shown.join("; "));
    if factor.origins.len() > SHOWN_ORIGINS {
        let _ = write!(text, "; and {} more sources", factor.origins.len() - SHOWN_ORIGINS);
    }
    text
}

fn origin_text(origin: &Origin) -> String {
    let year = origin.year.map(|year| year.to_string());
    match (&origin.source, year) {
        (None, None) => "source not given".to_owned(),
        (None, Some(year)) => format!("source not given, year {year}"),
        (Some(source), Some(year)) => format!("source: {}, {year}", escape(source)),
        (Some(source), None) if has_year(source) => format!("source: {}", escape(source)),
        (Some(source), None) => format!("source: {}, year not given", escape(source)),
    }
}

/// Whether a text names a year.
fn has_year(text: &str) -> bool {
    let is_year = |digits: &str| digits.len() == 4 && (digits.starts_with("19") || digits.starts_with("20"));
    text.split(|c: char| !c.is_ascii_digit()).any(is_year)
}

fn embodied_text(footprints: &Footprints<'_>, embodied: &Embodied) -> String {
    format!(
        "{}: {} kg of a host in {} y, for {:.1} s and {} % of all CPU time",
        mass(footprints.whole.embodied_g),
        embodied.host_g / 1e3,
        embodied.lifetime_years,
        seconds(footprints.recorded_ns),
        rounded(footprints.cpu_share * 100.0)
    )
}

fn reserved_text(reserved: &Reserved, overview: &Overview, without: &str) -> String {
    let percent = rounded(reserved.share * 100.0);
    let joules = figures::figure(reserved.static_energy.joules(), overview.label);
    let grams = mass(reserved.operational_g + reserved.embodied_g);
    format!("{grams}, with {percent} % of the hosts' static energy ({joules} J) and of their hardware{without}")
}

fn cost_text(footprints: &Footprints<'_>, price: &Price) -> String {
    let cost = price.amount(&rounded(footprints.whole.cost));
    let per_kwh = price.amount(&price.per_kwh.to_string());
    let each = footprints.work.map_or(String::new(), |work| {
        format!(", {} per unit of work", price.amount(&rounded(footprints.whole.cost / work)))
    });
    format!("{cost} at {per_kwh} per kWh{each}")
}

/// What the energy covers, and what not.
pub fn boundary(footprints: &Footprints<'_>, overview: &Overview) -> String {
    let domains: Vec<String> = overview.domains.iter().map(|domain| escape(domain)).collect();
    let domains = if domains.is_empty() { "no domain".to_owned() } else { domains.join(", ") };
    let building = if footprints.choices.pue > 1.0 { "" } else { "; cooling and power distribution" };
    let hardware = if footprints.choices.embodied.is_some() { "; hardware for time when CPUs were idle" } else { "" };
    let model = if overview.label.is_some_and(Label::is_estimate) {
        ". The energy is modelled, so all of this is an estimate"
    } else {
        ""
    };
    format!(
        "energy of {domains} that was attributed to the selected threads; not in it: static and unattributed energy; \
         what these domains do not measure, such as network and mostly disks and fans{building}{hardware}{model}"
    )
}

/// The same for machines.
pub fn json(footprints: &Footprints<'_>, overview: &Overview) -> Value {
    let choices = footprints.choices;
    let whole = footprints.whole;
    let has_carbon = choices.carbon.is_some();
    let per_unit = |amount: f64| footprints.work.map(|work| amount / work);
    json!({
        "energy_uj": footprints.energy.0,
        "pue": choices.pue,
        "kwh": footprints.kwh(),
        "factor": choices.carbon.as_ref().zip(footprints.factor.as_ref()).map(|(carbon, used)| factor_json(carbon, used)),
        "operational_gco2e": has_carbon.then_some(whole.operational_g),
        "embodied": choices.embodied.map(|embodied| json!({
            "host_gco2e": embodied.host_g,
            "lifetime_years": embodied.lifetime_years,
            "recorded_ns": footprints.recorded_ns,
            "cpu_share": footprints.cpu_share,
        })),
        "embodied_gco2e": choices.embodied.map(|_| whole.embodied_g),
        "gco2e": has_carbon.then(|| whole.grams()),
        "work": footprints.work,
        "gco2e_per_work": footprints.grams_per_work(),
        "reserved": footprints.reserved.map(|reserved| json!({
            "cpus": choices.reserved_cpus,
            "share": reserved.share,
            "static_uj": reserved.static_energy.0,
            "operational_gco2e": reserved.operational_g,
            "embodied_gco2e": choices.embodied.map(|_| reserved.embodied_g),
        })),
        "sci_gco2e": footprints.sci_g(),
        "price": choices.price.as_ref().map(|price| json!({"per_kwh": price.per_kwh, "currency": price.currency})),
        "cost": choices.price.as_ref().map(|_| whole.cost),
        "cost_per_work": choices.price.as_ref().and_then(|_| per_unit(whole.cost)),
        "boundary": boundary(footprints, overview),
    })
}

fn factor_json(carbon: &Carbon, used: &UsedFactor) -> Value {
    let zone = match &carbon.intensity {
        Intensity::ByTime(factors) => factors.zone.clone(),
        Intensity::GramsPerKwh(_) => None,
    };
    let origins = used.origins.iter().map(|origin| json!({"source": origin.source, "year": origin.year}));
    json!({
        "mean_g_per_kwh": used.mean_g_per_kwh,
        "min_g_per_kwh": used.min_g_per_kwh,
        "max_g_per_kwh": used.max_g_per_kwh,
        "method": carbon.method.map(super::Method::name),
        "zone": zone,
        "sources": origins.collect::<Vec<_>>(),
    })
}
