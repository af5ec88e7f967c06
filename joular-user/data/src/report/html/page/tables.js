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
    const parts = [element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table" }, table)];
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
