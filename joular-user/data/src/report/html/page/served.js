// What pages of a server do by themselves: they ask again every so often, and a drag over power selects its time.

/** Whether the reader is in the middle of something that another page would undo. */
function isBusy() {
  // Who writes, or goes through the page by keys, would be thrown back to its beginning.
  const isAtKeys = document.activeElement?.matches(":focus-visible") ?? false;
  return document.hidden || isAtKeys || document.querySelectorAll("#crumbs button").length > 1 || document.querySelector(".selecting") !== null;
}

function askAgain() {
  const every = Number(document.body.dataset.refresh);
  if (every > 0) setInterval(() => { if (!isBusy()) location.reload(); }, 1000 * every);
}

/** `svg` shows the time from `data-from` to `data-until`, in milliseconds, over its whole width. */
function selectTime(svg) {
  const [from, until] = [Number(svg.dataset.from), Number(svg.dataset.until)];
  const box = drawing("rect", { class: "selection", y: 0, height: "100%", width: 0 });
  svg.append(box);
  let start = null;
  const at = (event) => {
    const { left, width } = svg.getBoundingClientRect();
    return Math.min(Math.max((event.clientX - left) / width, 0), 1);
  };
  const end = () => {
    start = null;
    svg.classList.remove("selecting");
    box.setAttribute("width", 0);
  };
  svg.addEventListener("pointerdown", (event) => {
    start = at(event);
    svg.setPointerCapture(event.pointerId);
    svg.classList.add("selecting");
  });
  svg.addEventListener("pointermove", (event) => {
    if (start === null) return;
    const now = at(event);
    box.setAttribute("x", `${100 * Math.min(start, now)}%`);
    box.setAttribute("width", `${100 * Math.abs(now - start)}%`);
  });
  svg.addEventListener("pointercancel", end);
  svg.addEventListener("pointerup", (event) => {
    if (start === null) return;
    const [first, last] = [Math.min(start, at(event)), Math.max(start, at(event))];
    end();
    // A click selects nothing.
    if ((last - first) * svg.getBoundingClientRect().width < 5) return;
    const moment = (part) => new Date(from + (until - from) * part).toISOString();
    const query = new URLSearchParams(location.search);
    query.set("from", moment(first));
    query.set("until", moment(last));
    location.search = query.toString();
  });
}

askAgain();
document.querySelectorAll("svg[data-from]").forEach(selectTime);
