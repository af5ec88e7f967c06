//! Defines the flags that ask for emissions and cost of a selection.

use clap::Args;

#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Emissions and cost")]
pub struct FootprintFlags {
    /// Show emissions, from what a kilowatt-hour emits: a figure (250g/kWh), or a CSV file with columns
    /// time and g/kWh, and if wanted zone, source and year
    #[arg(long, value_name = "FACTOR|FILE")]
    pub carbon: Option<String>,

    /// Zone of the CSV file, if it has several
    #[arg(long, value_name = "ZONE", requires = "carbon")]
    pub zone: Option<String>,

    /// Who says so, and of which year: 'Ember, 2025'; reports print it
    #[arg(long, value_name = "TEXT", requires = "carbon")]
    pub carbon_source: Option<String>,

    /// Whether factors are of all power plants (average), or of those that a little more load starts (marginal);
    /// reports print it
    #[arg(long, value_name = "METHOD", requires = "carbon", value_parser = ["average", "marginal"])]
    pub carbon_method: Option<String>,

    /// Energy that the building uses for each unit that its machines use, at least 1: emissions and cost are of
    /// the product [default: 1]
    #[arg(long, value_name = "RATIO")]
    pub pue: Option<f64>,

    /// Emissions of making the host, and the years that it is used: 1000kg/4y; the selection gets its part by
    /// time and CPU time
    #[arg(long, value_name = "MASS/YEARS", requires = "carbon")]
    pub embodied: Option<String>,

    /// CPUs of each host that are reserved for the selection, used or not: shows the Software Carbon Intensity (SCI),
    /// which counts the idle power and the hardware of what is reserved
    #[arg(long, value_name = "CPUS", requires = "carbon")]
    pub reserved: Option<f64>,

    /// Show cost, from the price of a kilowatt-hour: 0.30/kWh or 0.30EUR/kWh
    #[arg(long, value_name = "PRICE")]
    pub price: Option<String>,

    /// Units of work that the selection did, such as requests: shows emissions and cost per unit. Of
    /// several runs give all work, or each one's count: 100,98,101
    #[arg(long, value_name = "COUNT", value_delimiter = ',')]
    pub work: Vec<f64>,
}
