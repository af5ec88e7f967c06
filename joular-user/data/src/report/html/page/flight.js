// Events of JDK Flight Recorder beside power: a lane for each type, drawn to the scale of the power chart.

const LANE = 16;
const JOINED = 7;
/** Where the power chart begins, so that both have one scale. */
const LANE_LEFT = 46;

class FlightLanes {
  constructor(figures) {
    this.figures = figures;
    this.isShown = figures.flights.length > 0;
    if (!this.isShown) return;
    for (const id of ["flight", "flight-link"]) byId(id).hidden = false;
    this.table();
    new ResizeObserver(() => this.draw()).observe(byId("flight-lanes"));
  }

  draw() {
    if (!this.isShown) return;
    const place = byId("flight-lanes");
    const width = Math.max(place.clientWidth, 200);
    place.replaceChildren(...this.figures.flights.flatMap((flight) => [
      element("h3", {}, this.title(flight)),
      ...flight.lanes.flatMap((lane) => this.lane(lane, width)),
      this.moments(width),
      ...(flight.left_out > 0 ? [element("p", { class: "note" }, `${count(flight.left_out)} more types of events are in the file: choose some with --jfr-event.`)] : []),
    ]));
  }

  title(flight) {
    const { strings } = this.figures;
    return flight.jvm < 0 ? strings[flight.name] : `${strings[flight.name]}: ${strings[flight.jvm]}`;
  }

  x(us, width) {
    const { time } = this.figures;
    return LANE_LEFT + ((width - LANE_LEFT - 6) * us) / (time.width_us * time.buckets);
  }

  /** Its name and sums, and a drawing: a bar for each event, and below how many were joined. */
  lane(lane, width) {
    const name = this.figures.strings[lane.name];
    const sums = laneSums(lane);
    const heading = element("div", { class: "lane" }, element("b", {}, name), element("span", {}, sums));
    const height = LANE + (lane.joined.length > 0 ? JOINED : 0);
    const svg = drawing("svg", { class: "lane", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${name}: ${sums}` },
      drawing("line", { class: "grid", x1: LANE_LEFT, x2: width - 6, y1: LANE - 0.5, y2: LANE - 0.5 }),
      ...this.bars(lane, width), ...this.joined(lane, width));
    return [heading, svg];
  }

  /** Those that are narrower than a pixel and begin at the same one are one bar, which says so. */
  bars(lane, width) {
    const bars = [];
    let last = null;
    lane.at_us.forEach((at, index) => {
      const [from, to] = [this.x(at, width), this.x(at + lane.length_ns[index] / 1000, width)];
      const isNarrow = to - from < 1;
      if (isNarrow && last?.pixel === Math.floor(from)) {
        last.others += 1;
        return;
      }
      const bar = { index, from, width: Math.max(to - from, 1), others: 0, pixel: Math.floor(from) };
      if (isNarrow) last = bar;
      bars.push(bar);
    });
    return bars.map((bar) => drawing("rect", { class: "bar", x: bar.from.toFixed(2), y: 1, width: bar.width.toFixed(2), height: LANE - 3 },
      drawing("title", {}, this.text(lane, bar))));
  }

  text(lane, { index, others }) {
    const what = lane.text[index] < 0 ? "" : `\n${this.figures.strings[lane.text[index]]}`;
    const more = others > 0 ? `\nand ${count(others)} more within the same pixel` : "";
    const length = lane.has_durations ? `${seconds(lane.length_ns[index])} from` : "at";
    return `${this.figures.strings[lane.name]}: ${length} ${seconds(lane.at_us[index] * 1000)} (${clockTime(this.figures.time.start_us + lane.at_us[index])} UTC)${what}${more}`;
  }

  /** A bucket of the page is the darker the more events are joined in it. */
  joined(lane, width) {
    const { time } = this.figures;
    const most = Math.max(...lane.joined.map(([, number]) => number), 1);
    return lane.joined.map(([bucket, number, sum]) => {
      const [from, to] = [this.x(bucket * time.width_us, width), this.x((bucket + 1) * time.width_us, width)];
      const text = `${count(number)} shorter events from ${seconds(bucket * time.width_us * 1000)} to ${seconds((bucket + 1) * time.width_us * 1000)}, ${seconds(sum)} together`;
      return drawing("rect", { class: "joined", x: from.toFixed(2), y: LANE, width: Math.max(to - from, 1).toFixed(2), height: JOINED - 1, "fill-opacity": (0.25 + (0.75 * number) / most).toFixed(2) },
        drawing("title", {}, text));
    });
  }

  moments(width) {
    const svg = drawing("svg", { viewBox: `0 0 ${width} 16`, width, height: 16, "aria-hidden": "true" });
    momentMarks(svg, this.figures.time, width - LANE_LEFT - 6, (bucket) => this.x(bucket * this.figures.time.width_us, width), 12);
    return svg;
  }

  table() {
    const { figures } = this;
    const rows = figures.flights.flatMap((flight) => flight.lanes.map((lane) => ({ lane, flight })));
    const name = ({ lane }) => figures.strings[lane.name];
    const mean = (side) => (side === null ? -1 : side[0] / side[1]);
    const shown = (side) => (side === null ? "–" : `${watts(side[0], side[1])} in ${count(side[2])} windows`);
    const columns = [
      { title: "Event", isText: true, class: "name", value: name, show: name },
      { title: "Events", value: ({ lane }) => lane.count, show: ({ lane }) => count(lane.count) },
      { title: "Time", value: ({ lane }) => lane.total_ns, show: ({ lane }) => (lane.has_durations ? seconds(lane.total_ns) : "–") },
      { title: "Longest", value: ({ lane }) => lane.longest_ns, show: ({ lane }) => (lane.has_durations ? seconds(lane.longest_ns) : "–") },
      { title: "Power while under way", value: ({ lane }) => mean(lane.with), show: ({ lane }) => (lane.why_not < 0 ? shown(lane.with) : figures.strings[lane.why_not]) },
      { title: "Power without", value: ({ lane }) => mean(lane.without), show: ({ lane }) => shown(lane.without) },
      { title: "Windows in part", value: ({ lane }) => lane.partly, show: ({ lane }) => count(lane.partly) },
    ];
    if (figures.flights.length > 1) columns.splice(1, 0, { title: "File", isText: true, class: "left", value: ({ flight }) => this.title(flight), show: ({ flight }) => this.title(flight) });
    new SortableTable(byId("flight-table"), columns, rows, columns.findIndex((column) => column.title === "Time"));
  }
}

function laneSums(lane) {
  const number = lane.joined.reduce((sum, [, each]) => sum + each, 0);
  const parts = [`${count(lane.count)} ${lane.count === 1 ? "event" : "events"}`];
  if (lane.has_durations) parts.push(`${seconds(lane.total_ns)} together`);
  if (number > 0) parts.push(`the ${count(lane.at_us.length)} longest are drawn one by one, ${count(number)} are joined below them`);
  return parts.join(", ");
}
