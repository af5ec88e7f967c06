// Power over time: the methods with most energy, stacked, each as the leaf.

/** Methods that the chart tells apart: more have no colours of their own. */
const STACKED = 11;

/** The series of the chart: the first ones, and all others as one. */
function stackedSeries(figures) {
  const { series, buckets } = figures.time;
  if (series.length <= STACKED + 1) return series;
  const energy_uj = Array.from({ length: buckets }, (_, bucket) => series.slice(STACKED).reduce((sum, each) => sum + each.energy_uj[bucket], 0));
  return [...series.slice(0, STACKED), { name: null, kind: figures.kinds.findIndex(([name]) => name === "others"), energy_uj }];
}

/** The length of a bucket of time: the last one may be shorter. */
function bucketNs(time, bucket) {
  return Math.max(Math.min(time.width_us, time.end_us - time.start_us - bucket * time.width_us), 1) * 1000;
}

class PowerChart {
  constructor(figures) {
    this.figures = figures;
    this.series = stackedSeries(figures);
    this.place = byId("power-chart");
    this.details = byId("power-details");
    this.list = element("ul", { class: "series" });
    this.details.after(this.list);
    this.at = -1;
    this.place.addEventListener("mousemove", (event) => this.point(event));
    this.place.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(this.place);
    this.summary();
  }

  wattsAt(series, bucket) {
    return (series.energy_uj[bucket] * 1000) / bucketNs(this.figures.time, bucket);
  }

  draw() {
    const { time } = this.figures;
    const left = 46;
    const sums = Array.from({ length: time.buckets }, (_, bucket) =>
      this.series.reduce((sum, series) => sum + this.wattsAt(series, bucket), 0));
    const top = niceAbove(Math.max(...sums, 1e-6));
    const { svg, x, y, inner, bottom } = timeChart(this.place, time, [240, left], top, (power) => `${Number(power.toPrecision(3))} W`);
    this.frame = { left, width: inner };
    const below = new Array(time.buckets).fill(0);
    this.series.forEach((series, index) => {
      const d = stackedArea((bucket) => this.wattsAt(series, bucket), below, x, y);
      svg.append(drawing("path", { d, fill: SERIES_COLORS[index % SERIES_COLORS.length] }));
    });
    this.cursor = drawing("line", { class: "cursor", y1: 8, y2: bottom, visibility: "hidden" });
    svg.append(this.cursor);
    this.place.replaceChildren(...timelineStrip(this.figures, left, this.frame.width), svg);
    this.x = x;
  }

  point(event) {
    const bounds = this.place.getBoundingClientRect();
    const part = (event.clientX - bounds.left - this.frame.left) / this.frame.width;
    this.show(Math.floor(part * this.figures.time.buckets));
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") this.summary();
    else if (step) this.show(this.at < 0 ? 0 : this.at + step);
    else return;
    event.preventDefault();
  }

  show(bucket) {
    const { time } = this.figures;
    if (bucket < 0 || bucket >= time.buckets) return;
    this.at = bucket;
    const middle = this.x(bucket + 0.5);
    for (const end of ["x1", "x2"]) this.cursor.setAttribute(end, middle);
    this.cursor.setAttribute("visibility", "visible");
    const sum = this.series.reduce((all, series) => all + series.energy_uj[bucket], 0);
    const start = time.start_us + bucket * time.width_us;
    describe(this.details, `${clockTime(start)} UTC`, [
      `${seconds(bucketNs(this.figures.time, bucket))} from ${seconds(bucket * time.width_us * 1000)}`,
      shownJoules(sum),
      watts(sum, bucketNs(this.figures.time, bucket)),
    ]);
    this.legend((series) => series.energy_uj[bucket], bucketNs(this.figures.time, bucket));
  }

  summary() {
    this.at = -1;
    if (this.cursor) this.cursor.setAttribute("visibility", "hidden");
    const { time, duration_ns } = this.figures;
    describe(this.details, "Whole time", [
      `${time.buckets} buckets of ${seconds(time.width_us * 1000)}`,
      this.series.length > STACKED ? `the ${STACKED} methods with most energy of their own, and the others together` : "all methods by energy of their own",
    ]);
    this.legend((series) => series.energy_uj.reduce((sum, energy) => sum + energy, 0), duration_ns);
  }

  legend(energyOf, overNs) {
    this.list.replaceChildren(...this.series.map((series, index) => {
      const name = series.name === null ? "[others]" : this.figures.strings[series.name];
      const energy = energyOf(series);
      const kind = this.figures.kinds[series.kind][0];
      return element("li", {}, swatch(SERIES_COLORS[index % SERIES_COLORS.length]), nameCell(name, kind),
        element("span", { class: "kind" }, kind),
        element("span", { class: "figure" }, `${joules(energy)} · ${watts(energy, overNs)}`));
    }));
  }
}
