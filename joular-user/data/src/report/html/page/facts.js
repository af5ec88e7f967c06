// The facts beside the pictures: tiles, JVMs, audit, quality, runs.

function factList(pairs) {
  const list = element("dl", { class: "facts" });
  for (const [what, value] of pairs) list.append(element("dt", {}, what), element("dd", {}, ...[value].flat()));
  return list;
}

function words(name) {
  return name.replaceAll("_", " ");
}

function tiles(figures) {
  const { audit } = figures;
  const whole = figures.jvms.reduce((sum, jvm) => sum + jvm.whole_uj, 0);
  const tax = figures.jvms.reduce((sum, jvm) => sum + jvm.tax_uj, 0);
  const profiler = audit.unattributed.find(([name]) => name === "profiler")[1];
  const doubt = figures.ambiguous > 0 ? `, ${count(figures.ambiguous)} readings ambiguous` : "";
  const shown = [
    ["Energy shown", shownJoules(figures.energy_uj), `${figures.label}${doubt}`],
    ["Mean power", watts(figures.energy_uj, figures.duration_ns), `over ${seconds(figures.duration_ns)}`],
    ["All domains", shownJoules(audit.measured_uj), `${share(figures.energy_uj, audit.measured_uj)} of it shown`],
    ["JVMs' own work", share(tax, whole), shownJoules(tax)],
    ["joular-bpf itself", shownJoules(profiler), share(profiler, audit.measured_uj)],
    ["Samples", count(figures.methods.reduce((sum, method) => sum + method.self_samples, 0)), ""],
  ];
  const { emissions } = figures;
  if (emissions?.grams != null) shown.push(["Emissions", grams(emissions.grams), "CO2e"]);
  if (emissions?.cost != null) shown.push(["Cost", money(emissions.cost), figures.strings[emissions.currency]]);
  byId("tiles").replaceChildren(...shown.map(([what, value, more]) =>
    element("div", {}, element("dt", {}, what), element("dd", {}, value, " ", element("small", {}, more)))));
  byId("tiles").firstChild.id = "tile-energy";
  const view = figures.app >= 0 ? ` · ${figures.strings[figures.app]}` : "";
  byId("subject").textContent = figures.headline + view;
}

function jvmTable(figures) {
  const place = byId("jvm-table");
  if (figures.jvms.length === 0) {
    place.append(element("p", { class: "note" }, "There is no JVM in this selection."));
    return;
  }
  const text = (at) => (at >= 0 ? figures.strings[at] : "–");
  const parts = figures.jvm_parts.map(([name, isTax], index) => ({
    title: words(name) + (isTax ? "*" : ""),
    value: (jvm) => jvm.parts_uj[index],
    show: (jvm) => (jvm.parts_uj[index] === 0 ? "–" : share(jvm.parts_uj[index], jvm.whole_uj)),
  }));
  const columns = [
    { title: "JVM", isText: true, class: "name", value: (jvm) => text(jvm.process), show: (jvm) => nameCell(text(jvm.process), "", `${text(jvm.version)} · ${text(jvm.collector)}`) },
    { title: "Energy", value: (jvm) => jvm.whole_uj, show: (jvm) => shownJoules(jvm.whole_uj) },
    { title: "Own work", value: (jvm) => jvm.tax_uj, show: (jvm) => `${joules(jvm.tax_uj)} (${share(jvm.tax_uj, jvm.whole_uj)})` },
    ...parts,
  ];
  new SortableTable(place, columns, figures.jvms, 1);
  place.append(element("p", { class: "note" }, "* Work of the JVM for itself, which no line of the program asks for directly. Parts do not overlap and sum to the whole. JVMs are whole processes: filters on threads and methods do not divide them."));
}

function auditBody(figures) {
  const { audit } = figures;
  const unattributed = audit.unattributed.reduce((sum, [, energy]) => sum + energy, 0);
  const holds = audit.measured_uj === audit.attributed_uj + audit.static_uj + unattributed;
  const energy = (uj) => element("span", { title: exactJoules(uj) }, `${joules(uj)} (${share(uj, audit.measured_uj)})`);
  // Nothing equals nothing, which proves nothing.
  const [judged, says] = audit.windows === 0 ? ["note", "not audited: there is no window with an audit"]
    : holds ? ["good", "✓ measured = attributed + static + unattributed, to the microjoule"]
    : ["bad", "✗ the parts do not sum to what was measured: run joular-bpf audit"];
  const verdict = element("p", { id: "verdict", class: judged }, says);
  const machine = element("div", {}, element("h3", {}, "All domains"), verdict, factList([
    ["measured", energy(audit.measured_uj)],
    ["attributed to targets", energy(audit.attributed_uj)],
    ["static (idle) share", energy(audit.static_uj)],
    ...audit.unattributed.map(([name, uj]) => [name === "profiler" ? "joular-bpf itself" : words(name), energy(uj)]),
  ]));
  const losses = audit.losses.length === 0 ? [["lost events", "none"]] : audit.losses.map(([cause, number]) => [`lost: ${words(cause)}`, count(number)]);
  const readings = element("div", {}, element("h3", {}, "Readings and losses"), factList([
    ["energy is", figures.label],
    ["sources", figures.sources.map((source) => figures.strings[source]).join(", ") || "none"],
    ["windows", count(audit.windows)],
    ["samples of targets", count(audit.samples)],
    ["ambiguous readings", count(audit.ambiguous)],
    ["failed reads", count(audit.read_failed)],
    ...(audit.lag ? [["phases may be off by", `${audit.lag}, because counters lag`]] : []),
    ...losses,
  ]));
  const quality = element("div");
  const text = (at) => (at >= 0 ? figures.strings[at] : "–");
  const whole = figures.qualities.reduce((sum, row) => sum + row.energy_uj, 0);
  new SortableTable(quality, [
    { title: "Threads", isText: true, value: (row) => row.category, show: (row) => row.category },
    { title: "Unwound by", isText: true, class: "left", value: (row) => text(row.unwinder), show: (row) => text(row.unwinder) },
    { title: "Ends because of", isText: true, class: "left", value: (row) => text(row.walk_end), show: (row) => words(text(row.walk_end)) },
    { title: "Complete", value: (row) => String(row.is_complete), show: (row) => (row.is_complete === null ? "unknown" : row.is_complete ? "yes" : "no") },
    { title: "Unnamed", isText: true, class: "left", value: (row) => text(row.unnamed), show: (row) => text(row.unnamed) },
    { title: "Energy", value: (row) => row.energy_uj, show: (row) => shownJoules(row.energy_uj) },
    { title: "Share", value: (row) => row.energy_uj, show: (row) => share(row.energy_uj, whole) },
    { title: "Samples", value: (row) => row.samples, show: (row) => count(row.samples) },
  ], figures.qualities, 5);
  byId("audit-body").replaceChildren(machine, readings);
  byId("audit-body").after(element("h3", {}, "Quality of stacks"), quality);
}

function emissionsBody(figures) {
  const { emissions, strings } = figures;
  if (emissions === null) return;
  for (const id of ["emissions", "emissions-link"]) byId(id).hidden = false;
  const lines = emissions.lines.map(([what, value]) => [strings[what], strings[value]]);
  byId("emissions-body").replaceChildren(element("p", {}, strings[emissions.title]), factList(lines));
}

function runFacts(figures) {
  byId("run-body").replaceChildren(...figures.runs.map((run) => factList(run.map(([what, text]) => [what, figures.strings[text]]))));
}
