// Tables that can be sorted and filtered.

/** Rows that are in the page at a time: more of them come by the button below. */
const SHOWN = 100;

class SortableTable {
  /** Columns have a title, a value to sort by, and what to show of a row. */
  constructor(place, columns, rows, sortBy) {
    Object.assign(this, { place, columns, rows, sortBy, isDown: true, shown: SHOWN });
    this.keep = () => true;
    this.draw();
  }

  filter(keep) {
    this.keep = keep;
    this.shown = SHOWN;
    this.draw();
    return this.kept.length;
  }

  draw() {
    const column = this.columns[this.sortBy];
    const sign = this.isDown ? -1 : 1;
    const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
    this.kept = this.rows.filter(this.keep).sort((a, b) => sign * compare(column.value(a), column.value(b)));
    const head = element("tr", {}, ...this.columns.map((each, index) => this.heading(each, index)));
    const body = this.kept.slice(0, this.shown).map((row) => element("tr", {}, ...this.columns.map((each) => {
      const cell = element("td", each.class ? { class: each.class } : {});
      cell.append(...[each.show(row)].flat());
      return cell;
    })));
    const table = element("table", {}, element("thead", {}, head), element("tbody", {}, ...body));
    const parts = [element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" }, table)];
    if (this.kept.length > this.shown) parts.push(this.more());
    this.place.replaceChildren(...parts);
  }

  more() {
    const button = element("button", { type: "button" }, `Show ${Math.min(SHOWN, this.kept.length - this.shown)} more of ${this.kept.length}`);
    button.addEventListener("click", () => {
      this.shown += SHOWN;
      this.draw();
    });
    return button;
  }

  heading(column, index) {
    const isSorted = index === this.sortBy;
    const button = element("button", { type: "button" }, column.title + (isSorted ? (this.isDown ? " ▾" : " ▴") : ""));
    button.addEventListener("click", () => {
      this.isDown = isSorted ? !this.isDown : column.isText !== true;
      this.sortBy = index;
      this.draw();
      this.place.querySelectorAll("th button")[index].focus();
    });
    const side = column.isText && column.class !== "name" ? { class: "left" } : {};
    return element("th", { ...side, scope: "col", "aria-sort": isSorted ? (this.isDown ? "descending" : "ascending") : "none" }, button);
  }
}

function methodTable(figures, onPick) {
  const text = (row) => figures.strings[row.name];
  const dim = (uj, interval) => element("span", { class: "dim" }, ` ${range(uj, interval, figures.label)}`);
  const all = figures.energy_uj;
  const hasInferred = figures.methods.some((row) => row.self_inferred_uj > 0);
  const columns = [
    { title: "Method", isText: true, class: "name", value: text, show: (row) => methodCell(figures, row, onPick) },
    { title: "Kind", isText: true, class: "left", value: (row) => row.kind, show: (row) => [swatch(figures.kinds[row.kind][1]), ` ${row.mix >= 0 ? figures.strings[row.mix] : figures.kinds[row.kind][0]}`] },
    { title: "Self, 95 %", value: (row) => row.self_uj, show: (row) => [joules(row.self_uj), dim(row.self_uj, row.self_interval_uj)] },
    { title: "Share", value: (row) => row.self_uj, show: (row) => share(row.self_uj, all) },
    ...(hasInferred ? [{ title: "Inferred", value: (row) => row.self_inferred_uj, show: (row) => (row.self_inferred_uj > 0 ? joules(row.self_inferred_uj) : "–") }] : []),
    { title: "Power", value: (row) => row.self_uj, show: (row) => watts(row.self_uj, figures.duration_ns) },
    { title: "Total, 95 %", value: (row) => row.total_uj ?? -1, show: (row) => (row.total_uj === null ? "–" : [joules(row.total_uj), dim(row.total_uj, row.total_interval_uj)]) },
    { title: "Share", value: (row) => row.total_uj ?? -1, show: (row) => (row.total_uj === null ? "–" : share(row.total_uj, all)) },
    ...(figures.emissions?.grams != null ? [{ title: "Self CO2e", value: (row) => row.self_g, show: (row) => grams(row.self_g) }] : []),
    ...(figures.emissions?.cost != null ? [{ title: "Self cost", value: (row) => row.self_cost, show: (row) => money(row.self_cost) }] : []),
    ...counterColumns(figures.counters),
    { title: "CPU", value: (row) => row.self_cpu_ns, show: (row) => seconds(row.self_cpu_ns) },
    { title: "Samples", value: (row) => row.self_samples, show: (row) => count(row.self_samples) },
  ];
  const table = new SortableTable(byId("method-table"), columns, figures.methods, 2);
  byId("method-note").textContent = `From–to is the 95 % interval of sampling. ${figures.interval_note}`;
  const filter = byId("method-filter");
  const said = () => {
    const part = filter.value.toLowerCase();
    const kept = table.filter((row) => text(row).toLowerCase().includes(part));
    const sum = table.kept.reduce((energy, row) => energy + row.self_uj, 0);
    byId("method-count").textContent = part ? `${count(kept)} methods, ${joules(sum)} self (${share(sum, all)})` : "";
  };
  filter.addEventListener("input", said);
}

/** What was allocated, by class and by method, if anything was. */
function allocationTables(figures, onPick) {
  const { allocated, strings } = figures;
  if (allocated === null) return;
  for (const id of ["allocations", "allocations-link"]) byId(id).hidden = false;
  const rate = (bytes) => (figures.duration_ns > 0 ? `${megabytes((bytes * 1e9) / figures.duration_ns)}/s` : "–");
  byId("allocations-sum").textContent = `${megabytes(allocated.bytes)}, ${rate(allocated.bytes)}, by ${count(allocated.samples)} samples`
    + (allocated.in_step_bytes > 0 ? `; of ${megabytes(allocated.in_step_bytes)} threads allocated in step with their buffers, so intervals are wide` : "")
    + (allocated.by_cpu_time_bytes > 0 ? `; of ${megabytes(allocated.by_cpu_time_bytes)} the place is inferred from samples of CPU time, and the class is unknown` : "");
  const dim = (bytes) => element("span", { class: "dim" }, bytes.low < bytes.high ? ` ${megabytes(bytes.low)}–${megabytes(bytes.high)}` : "");
  const amount = (title, of) => [
    { title: `${title}, 95 %`, value: (row) => of(row)?.bytes ?? -1, show: (row) => (of(row) ? [megabytes(of(row).bytes), dim(of(row))] : "–") },
    { title: "Share", value: (row) => of(row)?.bytes ?? -1, show: (row) => (of(row) ? share(of(row).bytes, allocated.bytes) : "–") },
  ];
  const columns = (title, totals) => [
    { title, isText: true, class: "name", value: (row) => strings[row.name], show: (row) => methodCell(figures, row, onPick) },
    ...amount("Self", (row) => row.own),
    { title: "Rate", value: (row) => row.own.bytes, show: (row) => rate(row.own.bytes) },
    ...(totals ? amount("Total", (row) => row.total) : []),
    { title: "Samples", value: (row) => row.own.samples, show: (row) => count(row.own.samples) },
  ];
  new SortableTable(byId("class-table"), columns("Class", false), allocated.classes, 1);
  new SortableTable(byId("allocating-table"), columns("Method", true), allocated.methods, 1);
}

/** What each method counted itself, and that per joule. */
function counterColumns(counters) {
  const perJoule = (row, at) => (row.self_uj > 0 ? (1e6 * row.self_counts[at]) / row.self_uj : -1);
  const shown = (value) => (value < 0 ? "–" : value < 100 ? value.toPrecision(3) : count(Math.round(value)));
  const columns = counters.flatMap((name, at) => [
    { title: `Self ${name}`, value: (row) => row.self_counts[at], show: (row) => count(row.self_counts[at]) },
    { title: "Per J", value: (row) => perJoule(row, at), show: (row) => shown(perJoule(row, at)) },
  ]);
  const [instructions, cycles] = ["instructions", "cycles"].map((name) => counters.indexOf(name));
  if (instructions < 0 || cycles < 0) return columns;
  const ipc = (row) => (row.self_counts[cycles] > 0 ? row.self_counts[instructions] / row.self_counts[cycles] : -1);
  return [...columns, { title: "IPC", value: ipc, show: (row) => (ipc(row) < 0 ? "–" : ipc(row).toFixed(2)) }];
}

function methodCell(figures, row, onPick) {
  const name = figures.strings[row.name];
  const pick = element("button", { type: "button", class: "pick", title: "Search it in the flame graph" }, "⌕");
  pick.setAttribute("aria-label", `Search ${name} in the flame graph`);
  pick.addEventListener("click", () => onPick(name));
  const parts = [pick, ` ${name}`];
  // A name may have all that tells it from others.
  if (row.detail >= 0) parts.push(element("small", {}, figures.strings[row.detail]));
  return parts;
}
