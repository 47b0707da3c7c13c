// Draws the plots, one after the other, and lets a cursor read them: with the pointer, a finger, or the arrow keys.
// The cursor reads the rows of the plot's table, so what it says is what the table says.
"use strict";

const drawn = new WeakSet();

async function draw(plot) {
  if (drawn.has(plot) || !plot.clientWidth) return;
  const spec = JSON.parse(document.getElementById(plot.dataset.spec).textContent);
  drawn.add(plot);
  const inside = plot.appendChild(document.createElement("div"));
  const { view } = await vegaEmbed(inside, spec, {
    mode: "vega-lite", renderer: "svg", ast: true, actions: false, tooltip: false, defaultStyle: false, hover: false,
  });
  const svg = plot.querySelector("svg");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("focusable", "false");
  plot.style.minHeight = "";
  plot.dataset.drawn = "yes";
  if (plot.getAttribute("role") === "slider") addCursor(plot, view);
}

function addCursor(plot, view) {
  const table = plot.closest("figure").querySelector("table");
  const rows = [...table.tBodies[0].rows];
  const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  const start = Number(table.dataset.start);
  const step = Number(table.dataset.step);
  const line = plot.appendChild(document.createElement("div"));
  const box = plot.appendChild(document.createElement("div"));
  line.className = "cursor";
  box.className = "readout";
  let at = rows.length;
  hide();

  function hide() {
    line.hidden = box.hidden = true;
  }
  function show(place) {
    at = Math.max(0, Math.min(rows.length - 1, place));
    const cells = [...rows[at].cells].map((cell) => cell.textContent);
    const values = cells.slice(1).flatMap((text, i) => (text ? [[names[i + 1], text]] : []));
    const entries = values.map(([name, text]) => {
      const entry = document.createElement("div");
      entry.append(Object.assign(document.createElement("span"), { textContent: name }), text);
      return entry;
    });
    box.replaceChildren(Object.assign(document.createElement("b"), { textContent: cells[0] }), ...entries);
    line.hidden = box.hidden = false;
    const x = view.origin()[0] + view.scale("x")(start + at * step);
    line.style.left = `${x}px`;
    const beside = x + 12 + box.offsetWidth < plot.clientWidth ? x + 12 : x - 12 - box.offsetWidth;
    box.style.left = `${Math.max(0, beside)}px`;
    plot.setAttribute("aria-valuenow", at);
    plot.setAttribute("aria-valuetext", `${cells[0]}: ${values.map((value) => value.join(" ")).join(", ")}`);
  }
  function place(event) {
    const x = event.clientX - plot.getBoundingClientRect().left - view.origin()[0];
    return Math.floor((view.scale("x").invert(x) - start) / step);
  }
  plot.addEventListener("pointermove", (event) => show(place(event)));
  plot.addEventListener("pointerdown", (event) => show(place(event)));
  plot.addEventListener("pointerleave", hide);
  plot.addEventListener("blur", hide);
  plot.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: 24, PageDown: -24 };
    if (event.key === "Escape") hide();
    else if (event.key === "Home") show(0);
    else if (event.key === "End") show(rows.length - 1);
    else if (event.key in steps) show(at + steps[event.key]);
    else return;
    event.preventDefault();
  });
  addEventListener("resize", hide);
}

function choose(input) {
  for (const other of document.getElementsByName(input.name)) {
    document.getElementById(other.value).hidden = other !== input;
  }
  for (const plot of document.getElementById(input.value).querySelectorAll(".plot")) draw(plot);
}

for (const choices of document.querySelectorAll(".choices")) {
  choices.hidden = false;
  choices.addEventListener("change", (event) => choose(event.target));
  choose(choices.querySelector("input"));
}

// What is visible comes first, then the rest, so that printing and searching find everything.
const plots = [...document.querySelectorAll(".plot")];
const observer = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) draw(entry.target);
}, { rootMargin: "400px" });
for (const plot of plots) observer.observe(plot);
addEventListener("load", async () => {
  for (const plot of plots) {
    await draw(plot);
    await new Promise((resume) => setTimeout(resume));
  }
  document.documentElement.dataset.drawn = "all";
});
