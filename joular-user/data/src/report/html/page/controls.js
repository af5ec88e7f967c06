// What stands around flame graphs: search, zoom, and how they are drawn. Graphs of one tree do all of it together.

class FlameControls {
  /** `said` makes words of what a search found in each graph; `pointed` describes a node. */
  constructor(said, pointed) {
    Object.assign(this, { said, pointed, graphs: [], text: "", isLiteral: false });
    byId("search").addEventListener("input", (event) => this.search(event.target.value));
    byId("reset").addEventListener("click", () => this.zoom(0));
    for (const [id, option] of [["icicle", "icicle"], ["simple", "isSimple"]]) {
      byId(id).addEventListener("change", (event) => {
        for (const graph of this.graphs) graph[option] = event.target.checked;
        this.draw();
        this.crumbs();
      });
    }
    document.addEventListener("keydown", (event) => this.key(event));
  }

  /** What a graph tells its listeners. `about` are the lines of the tip. */
  listeners(about) {
    return { zoom: (node) => this.zoom(node), pointed: (node) => this.pointed(node), about };
  }

  draw() {
    this.graphs.forEach((graph) => graph.draw());
  }

  zoom(node) {
    this.graphs.forEach((graph) => graph.zoom(node));
    this.search(this.text, this.isLiteral);
    this.crumbs();
    this.pointed(node);
  }

  crumbs() {
    const [graph] = this.graphs;
    byId("crumbs").replaceChildren(...graph.path(graph.focus).flatMap((node, index, path) => {
      const isLast = index === path.length - 1;
      const crumb = element("button", { type: "button", title: graph.nameOf(node), ...(isLast ? { "aria-current": "true" } : {}) }, graph.written(node));
      crumb.addEventListener("click", () => this.zoom(node));
      return isLast ? [crumb] : [crumb, "›"];
    }));
  }

  /** Looks for a text, and says how much it has. What is literal is not a pattern. */
  search(text, isLiteral = false) {
    Object.assign(this, { text, isLiteral });
    const matches = text === "" ? null : matcher(text, this.graphs[0].strings, isLiteral);
    const found = this.graphs.map((graph) => graph.search(matches));
    byId("matched").textContent = text !== "" && matches === null ? "not a pattern" : found[0] ? this.said(found) : "";
  }

  /** Looks for a name as it is: one that starts with `/` is not a pattern. */
  pick(text) {
    byId("search").value = text;
    this.search(text, true);
    byId("search").focus({ preventScroll: true });
  }

  key(event) {
    const isTyping = ["INPUT", "SELECT", "TEXTAREA"].includes(document.activeElement.tagName);
    const isSearching = document.activeElement.id === "search";
    if (event.key === "/" && !isTyping) {
      event.preventDefault();
      byId("search").focus();
    } else if (isSearching && (event.key === "Escape" || event.key === "Enter")) {
      if (event.key === "Escape") this.pick("");
      this.graphs[0].stage.focus({ preventScroll: true });
    }
  }
}

/** Colours of the kinds that nodes of a tree have. */
function kindLegend(place, kinds, tree) {
  const used = new Set([...tree.kind, ...tree.mix.flat().map((kind) => kind[0])]);
  place.replaceChildren(...kinds.flatMap(([name, color], kind) => (used.has(kind) ? [element("li", {}, swatch(color), name)] : [])));
}

function mergedNote(place, merged) {
  place.textContent = merged > 0 ? `The ${count(merged)} smallest nodes are merged in [others]: all widths still sum to the whole.` : "";
}

/** An amount of a metric of a page's tree, in its unit. */
function amountOfMetric(figures, metric, value) {
  if (metric === "energy") return joules(value);
  const measure = figures.measures.find((one) => one.name === metric);
  if (measure) return amountOf(measure, value);
  return metric === "cpu" ? seconds(value * 1000) : `${count(value)} samples`;
}

/** What there is to say of a node of a page's tree: energy first, and how it came about. */
function nodeFacts(figures, graph, node) {
  const { tree } = graph;
  const uj = tree.total.energy[node];
  const [samples, detail] = [tree.total.samples[node], tree.detail[node]];
  return [
    kindText(figures.kinds, tree, node),
    element("span", { title: exactJoules(uj) }, `${joules(uj)} (${figures.label})`),
    element("span", { title: exactJoules(tree.own.energy[node]) }, `self ${joules(tree.own.energy[node])}`),
    `${watts(uj, figures.duration_ns)} over ${seconds(figures.duration_ns)}`,
    `${share(uj, tree.total.energy[0])} of all`,
    graph.focus > 0 && `${share(uj, tree.total.energy[graph.focus])} of the zoomed frame`,
    `CPU ${seconds(tree.total.cpu[node] * 1000)}`,
    `${count(samples)} samples${shareInterval(uj, samples, tree.total.energy[0], tree.total.samples[0])}`,
    tree.total.inferred[node] > 0 && `${share(tree.total.inferred[node], uj)} by samples of other windows`,
    ...figures.measures.map((measure) => {
      const [part, whole] = [tree.total[measure.name][node], tree.total[measure.name][0]];
      return part > 0 && `${measure.title} ${amountOf(measure, part)} (${share(part, whole)})`;
    }),
    detail >= 0 && figures.strings[detail],
  ].filter(Boolean);
}

/** The same as lines of text, shorter: for a tip beside the pointer. */
function nodeLines(figures, graph, node) {
  const { tree, metric } = graph;
  const [whole, part] = [tree.total[metric][0], tree.total[metric][node]];
  const label = metric === "energy" ? ` (${figures.label})` : "";
  const interval = metric === "energy" ? shareInterval(part, tree.total.samples[node], whole, tree.total.samples[0]) : "";
  const own = tree.own[metric][node];
  return [
    `${amountOfMetric(figures, metric, part)}${label}, ${share(part, whole)} of all${interval}`,
    ...(own > 0 && own < part ? [`self ${amountOfMetric(figures, metric, own)}`] : []),
    kindText(figures.kinds, tree, node),
    ...(tree.detail[node] >= 0 ? [figures.strings[tree.detail[node]]] : []),
  ];
}

/**
 * The 95 % interval of a share, more roughly than in the method table: the whole selection
 * as one thread, of equal samples that hit or did not.
 */
function shareInterval(part, samples, whole, allSamples) {
  if (samples === 0 || whole === 0 || part === whole) return "";
  return ` (95 % interval of the share: ${shareRange(Math.min(part / whole, 1), allSamples)})`;
}

/** Light or dark, as the system is at first; `redraw` draws what has colours of its own. */
function followTheme(redraw) {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const set = (theme) => {
    document.documentElement.dataset.theme = theme;
    redraw();
  };
  dark.addEventListener("change", () => set(dark.matches ? "dark" : "light"));
  byId("theme").addEventListener("click", () => set(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
}

function firstTheme() {
  document.documentElement.dataset.theme = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** Charts are drawn when their width is known, which is after the next frame has begun. */
function sayReady() {
  requestAnimationFrame(() => requestAnimationFrame(() => {
    document.documentElement.dataset.ready = "true";
  }));
}
