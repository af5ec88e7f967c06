//! Makes OTLP's metrics of the families that are served to Prometheus.
//!
//! Names and labels are the same, so that queries and dashboards are, whichever way the figures came. Units are those of
//! the Unified Code for Units of Measure, as OpenTelemetry has them.

use joular_data::{
    events::{HostIdentity, RunInfo},
    model::units::UnixMicros,
    report::export::otlp::resource::{self, InstrumentationScope, KeyValue, Resource},
};

use super::{
    super::metrics::{Families, Figure, Kind, Labels, Moment, Unit},
    proto::{
        CUMULATIVE, Data, Gauge, Metric, MetricsRequest, Number, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
    },
};

/// Figures in a request. Collectors refuse bodies above some megabytes; a figure has less than 2 kB.
const MAX_POINTS: usize = 4000;

/// Requests that together have all metrics of a moment; none before the first window.
pub(super) fn requests(moment: &Moment) -> Vec<MetricsRequest> {
    let Some(end) = moment.end() else { return Vec::new() };
    let mut gathered =
        Gathered { start_ns: nanoseconds(moment.run().started), end_ns: nanoseconds(end), ..Gathered::default() };
    moment.tell(&mut gathered);
    let run = moment.run();
    let mut attributes = vec![
        KeyValue::text("service.name", "joular-bpf"),
        KeyValue::text("service.version", &run.version),
        // One recorder after the other on a host is the same instance: its counters begin again.
        KeyValue::text("service.instance.id", &instance(run)),
        KeyValue::text("host.name", run.host.raw()),
    ];
    attributes.extend(resource::of_host(&run.identity));
    let resource = Resource { attributes };
    let request = |metrics| MetricsRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(resource.clone()),
            scope_metrics: vec![ScopeMetrics { scope: Some(InstrumentationScope::own(Vec::new())), metrics }],
        }],
    };
    gathered.requests.into_iter().map(request).collect()
}

/// The host's name, with the machine's id if there is one: hosts may have the same name.
fn instance(run: &RunInfo) -> String {
    let HostIdentity { machine_id, instance_id, .. } = &run.identity;
    let id = instance_id.as_ref().or(machine_id.as_ref());
    id.map_or_else(|| run.host.raw().to_owned(), |id| format!("{}/{}", run.host.raw(), id.raw()))
}

fn nanoseconds(time: UnixMicros) -> u64 {
    u64::try_from(time.0).unwrap_or(0).saturating_mul(1000)
}

#[derive(Default)]
struct Gathered {
    start_ns: u64,
    end_ns: u64,
    family: Option<Family>,
    requests: Vec<Vec<Metric>>,
    /// In the last request.
    points: usize,
}

#[derive(Clone, Copy)]
struct Family {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    /// Whether the last request's last metric is this one.
    is_begun: bool,
}

impl Families for Gathered {
    fn family(&mut self, name: &'static str, kind: Kind, help: &'static str) {
        self.family = Some(Family { name, kind, help, is_begun: false });
    }

    fn sample(&mut self, labels: &Labels, figure: Figure) {
        let Some(family) = self.family else { return };
        if self.points == 0 || self.points >= MAX_POINTS {
            self.requests.push(Vec::new());
            self.points = 0;
        }
        let Some(metrics) = self.requests.last_mut() else { return };
        if !family.is_begun || self.points == 0 {
            metrics.push(family.metric());
            self.family = Some(Family { is_begun: true, ..family });
        }
        self.points += 1;
        let point = NumberDataPoint {
            start_time_unix_nano: if family.kind == Kind::Counter { self.start_ns } else { 0 },
            time_unix_nano: self.end_ns,
            value: Some(number(figure)),
            attributes: labels.pairs().map(|(name, value)| KeyValue::text(name, value)).collect(),
        };
        match metrics.last_mut().and_then(|metric| metric.data.as_mut()) {
            Some(Data::Sum(sum)) => sum.data_points.push(point),
            Some(Data::Gauge(gauge)) => gauge.data_points.push(point),
            None => {}
        }
    }
}

impl Family {
    fn metric(self) -> Metric {
        let Self { name, kind, help, .. } = self;
        let data = match kind {
            Kind::Counter => {
                Data::Sum(Sum { data_points: Vec::new(), aggregation_temporality: CUMULATIVE, is_monotonic: true })
            }
            Kind::Gauge | Kind::Info => Data::Gauge(Gauge::default()),
        };
        let unit = match Unit::of(name) {
            Some(Unit::Joules) => "J",
            Some(Unit::Seconds) => "s",
            Some(Unit::Watts) => "W",
            Some(Unit::Bytes) => "By",
            None => "1",
        };
        // OTLP knows no kind for facts: they are a gauge of 1, by the name that they have at Prometheus.
        let name = if kind == Kind::Info { format!("{name}_info") } else { name.to_owned() };
        Metric { name, description: help.to_owned(), unit: unit.to_owned(), data: Some(data) }
    }
}

#[allow(clippy::cast_precision_loss, reason = "OTLP has no decimals; 2^53 µJ are 104 days of 1 kW")]
fn number(figure: Figure) -> Number {
    match figure.digits {
        0 => Number::Int(i64::try_from(figure.count).unwrap_or(i64::MAX)),
        digits => Number::Double(figure.count as f64 / 10_f64.powi(digits.cast_signed())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_metrics_with_units_and_totals_say_since_when() {
        let mut gathered = Gathered { start_ns: 5, end_ns: 9, ..Gathered::default() };
        gathered.family("a_joules", Kind::Counter, "Energy");
        gathered.sample(&Labels::default().with("pid", "1"), Figure::micro(1_500_000));
        gathered.sample(&Labels::default().with("pid", "2"), Figure::micro(7));
        gathered.family("empty_watts", Kind::Gauge, "Nothing");
        gathered.family("build", Kind::Info, "Facts");
        gathered.sample(&Labels::default(), Figure::whole(1));
        let [metrics] = gathered.requests.as_slice() else { panic!("one request") };
        let [energy, build] = metrics.as_slice() else { panic!("two metrics: {metrics:?}") };
        assert_eq!((energy.name.as_str(), energy.unit.as_str()), ("a_joules", "J"));
        let Some(Data::Sum(sum)) = &energy.data else { panic!("{energy:?}") };
        assert!(sum.is_monotonic && sum.aggregation_temporality == CUMULATIVE);
        let values: Vec<_> = sum.data_points.iter().map(|point| (point.start_time_unix_nano, point.value)).collect();
        assert_eq!(values, [(5, Some(Number::Double(1.5))), (5, Some(Number::Double(0.000_007)))]);
        assert_eq!(sum.data_points[1].attributes, [KeyValue::text("pid", "2")]);
        assert_eq!((build.name.as_str(), build.unit.as_str()), ("build_info", "1"));
        let Some(Data::Gauge(gauge)) = &build.data else { panic!("{build:?}") };
        assert_eq!((gauge.data_points[0].time_unix_nano, gauge.data_points[0].value), (9, Some(Number::Int(1))));
    }

    #[test]
    fn many_figures_are_in_several_requests_and_each_says_what_they_are() {
        let mut gathered = Gathered::default();
        gathered.family("a_joules", Kind::Counter, "Energy");
        for pid in 0..MAX_POINTS + 1 {
            gathered.sample(&Labels::default().with("pid", &pid.to_string()), Figure::whole(1));
        }
        gathered.family("b_joules", Kind::Counter, "More");
        gathered.sample(&Labels::default(), Figure::whole(1));
        let names: Vec<Vec<&str>> = gathered
            .requests
            .iter()
            .map(|metrics| metrics.iter().map(|metric| metric.name.as_str()).collect())
            .collect();
        assert_eq!(names, [vec!["a_joules"], vec!["a_joules", "b_joules"]]);
    }
}
