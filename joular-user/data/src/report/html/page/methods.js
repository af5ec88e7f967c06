// Tables of methods: their energy, what they allocated, what was counted in them.

function methodTable(figures, onPick) {
  const text = (row) => figures.strings[row.name];
  const dim = (uj, interval) => element("span", { class: "dim" }, ` ${range(uj, interval, figures.label)}`);
  const all = figures.energy_uj;
  const inJava = figures.java_methods;
  const hasInferred = figures.methods.some((row) => row.self_inferred_uj > 0);
  const columns = [
    { title: "Method", isText: true, class: "name", value: text, show: (row) => methodCell(figures, row, onPick) },
    { title: "Kind", isText: true, class: "left", value: (row) => row.kind, show: (row) => kindCell(figures, row) },
    { title: "Self, 95 %", value: (row) => row.self_uj, show: (row) => [shownJoules(row.self_uj), dim(row.self_uj, row.self_interval_uj)] },
    { title: "Share", value: (row) => row.self_uj, show: (row) => share(row.self_uj, all) },
    ...(hasInferred ? [{ title: "Inferred", value: (row) => row.self_inferred_uj, show: (row) => (row.self_inferred_uj > 0 ? shownJoules(row.self_inferred_uj) : "–") }] : []),
    { title: "Power", value: (row) => row.self_uj, show: (row) => watts(row.self_uj, figures.duration_ns) },
    { title: "Total, 95 %", value: (row) => row.total_uj ?? -1, show: (row) => (row.total_uj === null ? "–" : [shownJoules(row.total_uj), dim(row.total_uj, row.total_interval_uj)]) },
    { title: "Share", value: (row) => row.total_uj ?? -1, show: (row) => (row.total_uj === null ? "–" : share(row.total_uj, all)) },
    ...(figures.emissions?.grams != null ? [{ title: "Self CO2e", value: (row) => row.self_g, show: (row) => grams(row.self_g) }] : []),
    ...(figures.emissions?.cost != null ? [{ title: "Self cost", value: (row) => row.self_cost, show: (row) => money(row.self_cost) }] : []),
    ...counterColumns(figures.counters),
    { title: "CPU", value: (row) => row.self_cpu_ns, show: (row) => seconds(row.self_cpu_ns) },
    { title: "Samples", value: (row) => row.self_samples, show: (row) => count(row.self_samples) },
  ];
  const table = new SortableTable(byId("method-table"), columns, inJava ?? figures.methods, 2);
  const note = (view) => { byId("method-note").textContent = `${view}From–to is the 95 % interval of sampling. ${figures.interval_note}`; };
  const filter = byId("method-filter");
  const said = () => {
    const part = filter.value.toLowerCase();
    const kept = table.filter((row) => text(row).toLowerCase().includes(part));
    const sum = table.kept.reduce((energy, row) => energy + row.self_uj, 0);
    byId("method-count").textContent = part ? `${count(kept)} methods, ${joules(sum)} self (${share(sum, all)})` : "";
  };
  filter.addEventListener("input", said);
  if (inJava === null) return note("");
  byId("view").textContent = "The flame graph, the power, the heat map and the callers are of all frames. The table of methods begins in the Java view.";
  byId("all-frames-choice").hidden = false;
  const choose = () => {
    const isWhole = byId("all-frames").checked;
    table.rows = isWhole ? figures.methods : inJava;
    note(isWhole ? "All frames: native and kernel code have rows of their own. " : "Java view: native and kernel code count for the Java code that called them. ");
    said();
  };
  byId("all-frames").addEventListener("change", choose);
  choose();
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

/** The main kind of code; the others are in its title. */
function kindCell(figures, row) {
  const [name, color] = figures.kinds[row.kind];
  if (row.mix < 0) return [swatch(color), ` ${name}`];
  return element("span", { title: figures.strings[row.mix] }, swatch(color), ` ${name} +`);
}

function methodCell(figures, row, onPick) {
  const name = figures.strings[row.name];
  const pick = element("button", { type: "button", class: "pick", title: "Search it in the flame graph" }, "⌕");
  pick.setAttribute("aria-label", `Search ${name} in the flame graph`);
  pick.addEventListener("click", () => onPick(name));
  const kind = row.kind === undefined ? "allocated-class" : figures.kinds[row.kind][0];
  // A name may have all that tells it from others.
  return element("span", { class: "picked" }, pick, nameCell(name, kind, row.detail >= 0 ? figures.strings[row.detail] : ""));
}
