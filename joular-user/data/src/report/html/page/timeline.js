// What programs said over time: a bar for each phase, a tick for each event. Below them, when garbage was collected.

const BAR = 15;
const COLLECTED = 9;
const BAR_COLORS = ["#c9d8ea", "#f3dcb4", "#c6e5d9", "#efcdb8", "#e9d3e1", "#d4ebf7"];

/** A drawing as wide as the buckets of a chart, or nothing if nothing was said. */
function timelineStrip(figures, left, width) {
  const { time } = figures;
  const { phases, events, left_out } = time.said;
  const collections = figures.collected?.at_us.length ?? 0;
  if (phases.length === 0 && events.length === 0 && collections === 0) return [];
  const lanes = lanesOf(phases);
  const collected = lanes.count * BAR + (events.length > 0 ? BAR : 0);
  const height = collected + (collections > 0 ? COLLECTED : 0) + 4;
  const x = (us) => left + (width * us) / (time.width_us * time.buckets);
  const label = `${phases.length} phases and ${events.length} events of the program, ${collections} garbage collections`;
  const svg = drawing("svg", { class: "timeline", viewBox: `0 0 ${left + width} ${height}`, width: left + width, height, role: "img", "aria-label": label });
  phases.forEach((phase, index) => {
    const [from, to] = [x(phase.from_us), x(phase.to_us)];
    const y = lanes.of[index] * BAR;
    const name = figures.strings[phase.path];
    const color = BAR_COLORS[phase.path % BAR_COLORS.length];
    const bar = drawing("g", {},
      drawing("title", {}, `${name}: ${seconds((phase.to_us - phase.from_us) * 1000)} from ${seconds(phase.from_us * 1000)}`),
      drawing("rect", { x: from, y: y + 1, width: Math.max(to - from, 1), height: BAR - 2, fill: color }));
    const room = Math.floor((to - from - 6) / 7);
    if (room > 2) bar.append(drawing("text", { x: from + 3, y: y + BAR - 4 }, name.length > room ? `${name.slice(0, room - 1)}…` : name));
    svg.append(bar);
  });
  const base = lanes.count * BAR;
  for (const event of events) {
    const at = x(event.at_us);
    svg.append(drawing("g", { class: "event" },
      drawing("title", {}, `${figures.strings[event.text]} at ${seconds(event.at_us * 1000)}`),
      drawing("path", { d: `M${at - 4} ${base + 3}L${at + 4} ${base + 3}L${at} ${base + BAR - 2}Z` })));
  }
  for (let index = 0; index < collections; index++) svg.append(collectionBar(figures, index, x, collected));
  if (left_out === 0) return [svg];
  return [svg, element("div", { class: "note" }, `${left_out} shorter phases are not shown`)];
}

/** When a collection was under way. */
function collectionBar(figures, index, x, y) {
  const { at_us, duration_us } = figures.collected;
  const [from, to] = [x(Math.max(at_us[index], 0)), x(at_us[index] + duration_us[index])];
  return drawing("rect", { class: "collection", x: from, y: y + 2, width: Math.max(to - from, 1), height: COLLECTED - 3, fill: collectorColor(figures, index) },
    drawing("title", {}, collectionText(figures, index)));
}

/** The collectors, in the order of their colours. */
function collectorsOf(collected) {
  collected.collectors ??= [...new Set(collected.collector)];
  return collected.collectors;
}

function collectorColor({ collected }, index) {
  return SERIES_COLORS[collectorsOf(collected).indexOf(collected.collector[index]) % SERIES_COLORS.length];
}

function collectionText(figures, index) {
  const { at_us, duration_us, before_bytes, after_bytes, collector, cause, energy_uj } = figures.collected;
  const why = cause[index] < 0 ? "" : `, ${figures.strings[cause[index]]}`;
  const after = after_bytes[index] < 0 ? ", under way" : ` → ${megabytes(after_bytes[index])}`;
  return `${figures.strings[collector[index]]}${why}: ${megabytes(before_bytes[index])}${after} in ${seconds(duration_us[index] * 1000)}, ${joules(energy_uj[index])}, at ${seconds(at_us[index] * 1000)}`;
}

/** Phases that are open at the same time are below each other. */
function lanesOf(phases) {
  const ends = [];
  const of = phases.map((phase) => {
    let lane = ends.findIndex((end, index) => index >= phase.depth && end <= phase.from_us);
    if (lane < 0) lane = Math.max(ends.length, phase.depth);
    while (ends.length <= lane) ends.push(-Infinity);
    ends[lane] = phase.to_us;
    return lane;
  });
  return { of, count: ends.length };
}
