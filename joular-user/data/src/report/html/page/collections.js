// Garbage collections over time: the heap, the ages of what outlived them, and what was allocated.

class CollectionCharts {
  constructor(figures) {
    const { collected } = figures;
    this.isShown = collected !== null;
    if (!this.isShown) return;
    Object.assign(this, { figures, collected });
    for (const id of ["collections", "collections-link"]) byId(id).hidden = false;
    const note = collected.left_out > 0 ? `${count(collected.left_out)} shorter collections are not drawn. ` : "";
    byId("collection-note").textContent = `${note}The energy of collections is their part of what collectors used.`;
    byId("age-part").hidden = collected.ages.length === 0;
    this.table();
    new ResizeObserver(() => this.draw()).observe(byId("heap-chart"));
  }

  draw() {
    if (!this.isShown) return;
    this.heap();
    const { time, strings } = this.figures;
    const ages = this.collected.ages.map((bytes, index) => ({ name: `age ${index + 1}`, at: (bucket) => bytes[bucket] ?? 0 }));
    stackChart(time, "age-chart", ages, megabytes);
    const series = this.collected.allocated.map(({ class: name, bytes }) => ({ name: name < 0 ? "not sampled" : strings[name], at: (bucket) => bytesPerSecond(time, bytes[bucket], bucket) }));
    stackChart(time, "allocation-chart", series, (value) => `${megabytes(value)}/s`);
  }

  nameOf(place) {
    return place < 0 ? "–" : this.figures.strings[place];
  }

  /** A bar for each collection: as long as it took, from what the heap had before to what it had after. */
  heap() {
    const { collected, figures } = this;
    const { time } = figures;
    const place = byId("heap-chart");
    const top = niceAbove(Math.max(...collected.before_bytes, 1));
    const chart = timeChart(place, time, [200, LEFT], top, megabytes);
    const xOf = (us) => chart.x(us / time.width_us);
    collected.at_us.forEach((at, index) => {
      const [before, after] = [collected.before_bytes[index], Math.max(collected.after_bytes[index], 0)];
      const [from, to] = [xOf(Math.max(at, 0)), xOf(at + collected.duration_us[index])];
      const [high, low] = [chart.y(Math.max(before, after)), chart.y(Math.min(before, after))];
      chart.svg.append(drawing("rect", { x: from, y: high, width: Math.max(to - from, 1.5), height: Math.max(low - high, 1.5), fill: collectorColor(figures, index) },
        drawing("title", {}, collectionText(figures, index))));
    });
    place.replaceChildren(chart.svg);
    chartLegend("heap-chart", collectorsOf(collected).map((collector) => figures.strings[collector]));
  }

  table() {
    const name = (row) => this.nameOf(row.collector);
    const columns = [
      { title: "Collector", isText: true, class: "name", value: name, show: name },
      { title: "Cause", isText: true, class: "left", value: (row) => this.nameOf(row.cause), show: (row) => this.nameOf(row.cause) },
      { title: "Collections", value: (row) => row.count, show: (row) => count(row.count) },
      { title: "Time", value: (row) => row.duration_ns, show: (row) => seconds(row.duration_ns) },
      { title: "Longest", value: (row) => row.longest_ns, show: (row) => seconds(row.longest_ns) },
      { title: "Freed", value: (row) => row.freed_bytes, show: (row) => megabytes(row.freed_bytes) },
      { title: "Energy", value: (row) => row.energy_uj, show: (row) => joules(row.energy_uj) },
    ];
    new SortableTable(byId("collection-table"), columns, this.collected.sums, 6);
  }
}
