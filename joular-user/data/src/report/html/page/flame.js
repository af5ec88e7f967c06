// A flame graph: frames of the zoomed node's width, drawn on one canvas. Only what is wider than half a pixel is
// drawn, so the work is bounded by the screen; the rest comes when a frame above it is zoomed.

const ROW = 19;
const NARROWEST = 0.5;

class FlameGraph {
  /**
   * `stage` holds the drawing. `shown` says what is drawn: `strings`, `kinds` with their colours, and `metric`, what
   * widths are. `listeners` hear of the node that is to be zoomed or is pointed at; `about` is what is said of one.
   */
  constructor(stage, tree, shown, listeners) {
    Object.assign(this, { stage, listeners, icicle: true, isSimple: true, matches: null, boxes: [] }, shown);
    this.canvas = element("canvas", { "aria-hidden": "true" });
    stage.append(this.canvas);
    this.setTree(tree);
    this.canvas.addEventListener("mousemove", (event) => this.point(event));
    this.canvas.addEventListener("mouseleave", () => { byId("tip").hidden = true; });
    this.canvas.addEventListener("click", (event) => {
      const node = this.nodeAt(event);
      if (node >= 0) this.listeners.zoom(node);
    });
    stage.addEventListener("keydown", (event) => this.key(event));
    for (const change of ["focus", "blur"]) stage.addEventListener(change, () => this.draw());
    new ResizeObserver(() => this.draw()).observe(stage);
  }

  setTree(tree) {
    this.tree = tree;
    this.focus = 0;
    this.cursor = 0;
    this.found = null;
  }

  /** Marks what matches; how much that has of the zoomed node, or nothing if nothing is looked for. */
  search(matches) {
    const result = matches ? searched(this.tree, this.metric, matches, this.focus) : null;
    this.found = result && result.found;
    this.draw();
    return result && { ...result, whole: this.tree.total[this.metric][this.focus] };
  }

  zoom(node) {
    this.focus = node;
    this.cursor = node;
  }

  path(node) {
    const path = [];
    for (let at = node; at >= 0; at = this.tree.parent[at]) path.unshift(at);
    return path;
  }

  nameOf(node) {
    return this.strings[this.tree.name[node]];
  }

  /** The name, without its package if names are simple. */
  written(node) {
    const name = this.nameOf(node);
    return this.isSimple ? name.slice(packageOf(this.kinds[this.tree.kind[node]][0], name)) : name;
  }

  draw() {
    const width = this.stage.clientWidth;
    if (width === 0) return;
    this.layout(width);
    const height = (this.rows + 1) * ROW;
    const context = sized(this.canvas, width, height);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    const mark = themed("--mark");
    this.height = height;
    for (const box of this.boxes) {
      const y = this.yOf(box.row);
      const isDim = (this.found && !this.found[box.node]) || box.isAbove;
      context.globalAlpha = isDim ? 0.35 : 1;
      this.fill(context, box, y);
      context.globalAlpha = 1;
      if (this.found && this.found[box.node]) {
        context.fillStyle = mark;
        context.fillRect(box.x, this.icicle ? y : y + ROW - 4, Math.max(box.width - 0.6, 0.5), 3);
      }
      if (box.width > 26) this.write(context, box, y, isDim);
      if (box.node === this.cursor && document.activeElement === this.stage) {
        context.lineWidth = 2;
        context.strokeStyle = themed("--ink");
        context.strokeRect(box.x + 1, y + 1, Math.max(box.width - 2.6, 1), ROW - 3);
      }
    }
    this.stage.dataset.boxes = this.boxes.length;
  }

  /** A box has the colour of its kind, or of its kinds as much of each as there is. */
  fill(context, box, y) {
    const whole = Math.max(box.width - 0.6, 0.5);
    const color = this.colorOf?.(box.node);
    context.fillStyle = color ?? this.kinds[this.tree.kind[box.node]][1];
    context.fillRect(box.x, y, whole, ROW - 1);
    if (color) return;
    const mix = this.tree.mix[box.node];
    const sum = mix.reduce((all, kind) => all + kind[1], 0);
    if (sum === 0) return;
    let at = box.x;
    for (const [kind, part] of mix) {
      context.fillStyle = this.kinds[kind][1];
      context.fillRect(at, y, (whole * part) / sum, ROW - 1);
      at += (whole * part) / sum;
    }
  }

  write(context, box, y, isDim) {
    context.fillStyle = isDim && document.documentElement.dataset.theme === "dark" ? "#e8e9ea" : "#16181a";
    context.fillText(fitted(context, this.written(box.node), box.width - 7), box.x + 3, y + ROW / 2);
  }

  yOf(row) {
    return this.icicle ? row * ROW : this.height - (row + 1) * ROW;
  }

  /** Boxes of what is above the focus, the focus and all that is wide enough below it. */
  layout(width) {
    const { tree, focus } = this;
    const total = tree.total[this.metric];
    const path = this.path(focus);
    this.boxes = path.map((node, row) => ({ node, row, x: 0, width, isAbove: node !== focus }));
    const scale = total[focus] > 0 ? width / total[focus] : 0;
    const base = path.length - 1;
    this.rows = base + 1;
    const stack = [[focus, 0, base]];
    while (stack.length > 0) {
      const [node, x, row] = stack.pop();
      let at = x;
      for (let child = node + 1; child < tree.end[node]; child = tree.end[child]) {
        const childWidth = total[child] * scale;
        if (childWidth >= NARROWEST) {
          this.boxes.push({ node: child, row: row + 1, x: at, width: childWidth, isAbove: false });
          this.rows = Math.max(this.rows, row + 2);
          stack.push([child, at, row + 1]);
        }
        at += childWidth;
      }
    }
    this.scale = scale;
  }

  /** Children of a node that are too narrow to be drawn now: how many, and what they have. */
  narrow(node) {
    const { tree } = this;
    const total = tree.total[this.metric];
    let [number, sum] = [0, 0];
    for (let child = node + 1; child < tree.end[node]; child = tree.end[child]) {
      if (total[child] === 0 || total[child] * this.scale >= NARROWEST) continue;
      number += 1;
      sum += total[child];
    }
    return { number, sum };
  }

  nodeAt(event) {
    const bounds = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - bounds.left, event.clientY - bounds.top];
    const row = this.icicle ? Math.floor(y / ROW) : Math.floor((this.height - y) / ROW);
    const box = this.boxes.find((candidate) => candidate.row === row && x >= candidate.x && x < candidate.x + candidate.width);
    return box ? box.node : -1;
  }

  point(event) {
    const node = this.nodeAt(event);
    if (node >= 0) this.listeners.pointed(node);
    placeTip(event, node < 0 ? [] : [this.nameOf(node), ...this.listeners.about(node), ...this.hiddenBelow(node)]);
  }

  hiddenBelow(node) {
    const { number, sum } = this.narrow(node);
    if (number === 0) return [];
    return [`${count(number)} of its callees are too narrow to be drawn: ${share(sum, this.tree.total[this.metric][node])} of it. Click to zoom`];
  }

  key(event) {
    const moves = {
      ArrowUp: () => (this.icicle ? this.parentOf() : this.childOf()),
      ArrowDown: () => (this.icicle ? this.childOf() : this.parentOf()),
      ArrowLeft: () => this.sibling(-1),
      ArrowRight: () => this.sibling(1),
      Home: () => this.focus,
    };
    if (event.key === "Enter" || event.key === " ") this.listeners.zoom(this.cursor);
    else if (event.key === "Escape" && this.focus > 0) this.listeners.zoom(this.tree.parent[this.focus]);
    else if (moves[event.key]) this.moveTo(moves[event.key]());
    else return;
    event.preventDefault();
  }

  moveTo(node) {
    const box = this.boxes.find((candidate) => candidate.node === node);
    if (!box) return;
    this.cursor = node;
    this.listeners.pointed(node);
    this.draw();
    const y = this.yOf(box.row);
    if (y < this.stage.scrollTop || y + ROW > this.stage.scrollTop + this.stage.clientHeight) {
      this.stage.scrollTop = y - this.stage.clientHeight / 2;
    }
  }

  parentOf() {
    return this.tree.parent[this.cursor];
  }

  /** The widest child that is drawn. */
  childOf() {
    const children = this.boxes.filter((box) => this.tree.parent[box.node] === this.cursor);
    if (children.length === 0) return -1;
    return children.reduce((widest, box) => (box.width > widest.width ? box : widest)).node;
  }

  sibling(step) {
    const here = this.boxes.find((box) => box.node === this.cursor);
    if (!here) return -1;
    const row = this.boxes.filter((box) => box.row === here.row).sort((a, b) => a.x - b.x);
    const next = row[row.indexOf(here) + step];
    return next ? next.node : -1;
  }
}

/** As much of a text as fits, its end first: the class and method. */
function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let [least, most] = [0, text.length];
  while (least < most) {
    const middle = (least + most) >> 1;
    if (context.measureText(`…${text.slice(middle)}`).width <= width) most = middle;
    else least = middle + 1;
  }
  return text.length - least < 3 ? "" : `…${text.slice(least)}`;
}
