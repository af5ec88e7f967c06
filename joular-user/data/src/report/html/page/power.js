// Power over time: the methods with most energy, stacked, each as the leaf.

const SERIES_COLORS = [
  "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9",
  "#b3a100", "#6a4c93", "#8c564b", "#3cb4ac", "#e377a8", "#9aa0a6",
];

class PowerChart {
  constructor(figures) {
    this.figures = figures;
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

  /** A bucket's length: the last one may be shorter. */
  lengthNs(bucket) {
    const { start_us, end_us, width_us } = this.figures.time;
    return Math.max(Math.min(width_us, end_us - start_us - bucket * width_us), 1) * 1000;
  }

  wattsAt(series, bucket) {
    return (series.energy_uj[bucket] * 1000) / this.lengthNs(bucket);
  }

  draw() {
    const { time } = this.figures;
    const [width, height, left, bottom] = [Math.max(this.place.clientWidth, 200), 240, 46, 22];
    this.frame = { left, width: width - left - 6 };
    const sums = Array.from({ length: time.buckets }, (_, bucket) =>
      time.series.reduce((sum, series) => sum + this.wattsAt(series, bucket), 0));
    const top = niceAbove(Math.max(...sums, 1e-6));
    const x = (bucket) => left + (this.frame.width * bucket) / time.buckets;
    const y = (power) => height - bottom - ((height - bottom - 8) * power) / top;
    const svg = drawing("svg", { viewBox: `0 0 ${width} ${height}`, width, height });
    for (const part of [0, 0.25, 0.5, 0.75, 1]) {
      svg.append(drawing("line", { class: "grid", x1: left, x2: width - 6, y1: y(top * part), y2: y(top * part) }));
      svg.append(drawing("text", { x: left - 6, y: y(top * part) + 4, "text-anchor": "end" }, `${Number((top * part).toPrecision(3))} W`));
    }
    const below = new Array(time.buckets).fill(0);
    time.series.forEach((series, index) => {
      svg.append(drawing("path", { d: this.area(series, below, x, y), fill: SERIES_COLORS[index % SERIES_COLORS.length] }));
    });
    const marks = Math.min(6, time.buckets);
    for (let mark = 0; mark <= marks; mark++) {
      const moment = time.start_us + ((time.end_us - time.start_us) * mark) / marks;
      const anchor = mark === 0 ? "start" : mark === marks ? "end" : "middle";
      svg.append(drawing("text", { x: x((time.buckets * mark) / marks), y: height - 6, "text-anchor": anchor }, clockTime(moment)));
    }
    this.cursor = drawing("line", { class: "cursor", y1: 8, y2: height - bottom, visibility: "hidden" });
    svg.append(this.cursor);
    this.place.replaceChildren(...timelineStrip(this.figures, left, this.frame.width), svg);
    this.x = x;
  }

  /** Steps, not slopes: a bucket has one mean power. Raises `below` by the series. */
  area(series, below, x, y) {
    const [up, down] = [[], []];
    for (let bucket = 0; bucket < below.length; bucket++) {
      const [from, to] = [x(bucket).toFixed(1), x(bucket + 1).toFixed(1)];
      const floor = y(below[bucket]).toFixed(1);
      below[bucket] += this.wattsAt(series, bucket);
      const ceiling = y(below[bucket]).toFixed(1);
      up.push(`${from} ${ceiling}L${to} ${ceiling}`);
      down.unshift(`${to} ${floor}L${from} ${floor}`);
    }
    return `M${up.join("L")}L${down.join("L")}Z`;
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
    const sum = time.series.reduce((all, series) => all + series.energy_uj[bucket], 0);
    const start = time.start_us + bucket * time.width_us;
    describe(this.details, `${clockTime(start)} UTC`, [
      `${seconds(this.lengthNs(bucket))} from ${seconds(bucket * time.width_us * 1000)}`,
      `${exactJoules(sum)} J`,
      watts(sum, this.lengthNs(bucket)),
    ]);
    this.legend((series) => series.energy_uj[bucket], this.lengthNs(bucket));
  }

  summary() {
    this.at = -1;
    if (this.cursor) this.cursor.setAttribute("visibility", "hidden");
    const { time, duration_ns } = this.figures;
    const methods = time.series.length;
    describe(this.details, "Whole time", [
      `${time.buckets} buckets of ${seconds(time.width_us * 1000)}`,
      methods > 11 ? "the 11 methods with most energy of their own, and the others together" : "all methods by energy of their own",
    ]);
    this.legend((series) => series.energy_uj.reduce((sum, energy) => sum + energy, 0), duration_ns);
  }

  legend(energyOf, overNs) {
    this.list.replaceChildren(...this.figures.time.series.map((series, index) => {
      const name = this.figures.strings[series.name];
      const energy = energyOf(series);
      return element("li", { title: name }, swatch(SERIES_COLORS[index % SERIES_COLORS.length]),
        element("span", { class: "name" }, name),
        element("span", { class: "kind" }, this.figures.kinds[series.kind][0]),
        element("span", { class: "figure" }, `${joules(energy)} · ${watts(energy, overNs)}`));
    }));
  }
}

/** The next of 1, 2, 5, 10, … */
function niceAbove(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.2, 1.6, 2, 2.4, 3.2, 4, 5, 6, 8, 10].map((step) => step * power).find((step) => step >= value) || value;
}
