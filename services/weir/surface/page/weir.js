"use strict";
// Keeps the numbers current without a reload. Asks less often while nobody looks.
const live = document.getElementById("live");
const numbers = new Intl.NumberFormat();

function show(status) {
  for (const place of document.querySelectorAll("[data-key]")) {
    const value = status[place.dataset.key];
    if (value === undefined) continue;
    place.textContent = numbers.format(value < 10 ? Math.round(value * 10) / 10 : Math.round(value));
  }
}

function cell(value) {
  const place = document.createElement("td");
  if (typeof value === "boolean") place.textContent = value ? "yes" : "no";
  else place.textContent = typeof value === "number" ? numbers.format(value) : value || "–";
  return place;
}

function list(status) {
  for (const place of document.querySelectorAll("[data-rows]")) {
    const rows = status[place.dataset.rows] || [];
    place.hidden = rows.length === 0;
    place.querySelector("tbody").replaceChildren(...rows.map((row) => {
      const line = document.createElement("tr");
      line.append(...place.dataset.fields.split(" ").map((field) => cell(row[field])));
      return line;
    }));
  }
}

function report(problems) {
  const place = document.getElementById("problems");
  place.textContent = problems.join(" ");
  place.hidden = problems.length === 0;
}

async function refresh() {
  try {
    const answer = await fetch("status.json", { cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    const status = await answer.json();
    show(status);
    list(status);
    report(status.problems || []);
    live.dataset.state = "live";
    live.textContent = "live";
  } catch {
    live.dataset.state = "lost";
    live.textContent = "no answer";
  }
  setTimeout(refresh, document.hidden ? 15000 : 2000);
}

document.getElementById("copy").addEventListener("click", async (event) => {
  const code = document.getElementById("address");
  try {
    await navigator.clipboard.writeText(code.textContent);
    event.target.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(code); // no clipboard without TLS: the address is selected instead
    event.target.textContent = "Press Ctrl-C";
  }
  setTimeout(() => { event.target.textContent = "Copy"; }, 2000);
});
refresh();
