// Tables of words and numbers: which components separate which labels, and what two results have in common.
const go = { component: () => {}, colour: () => {} }; // filled in by the sections that can show a component or a label

function drawSeparation(view) {
  const section = $("#separation");
  section.hidden = false;
  $(".lead", section).textContent = view.lead;
  const table = $("table", section), FIRST = 12;
  function line({ component, strength, cells }) {
    const bar = element("i");
    bar.style.width = 100 * strength + "%";
    const name = element("button", { type: "button", class: "link", text: cells[0], title: "Show its variables and scores" });
    name.addEventListener("click", () => { go.component(component); go.colour(cells[1], component); $("#components").scrollIntoView(); });
    return element("tr", {}, element("th", { scope: "row" }, name),
      ...cells.slice(1).map((text, k) => (k === 2
        ? element("td", { class: "strength" }, element("span", { text: text.replace("-", "−") }), element("span", { class: "track" }, bar))
        : element("td", { text, class: k >= 4 ? "figure" : null }))));
  }
  function draw(most) {
    table.replaceChildren(
      element("thead", {}, element("tr", {}, ...view.header.map((text, k) => element("th", { scope: "col", text, class: k >= 5 ? "figure" : null })))),
      element("tbody", {}, ...view.rows.map((row, k) => { const node = line(row); if (k >= most) node.className = "later"; return node; })));
  }
  draw(FIRST);
  const more = $("button.more", section);
  more.hidden = view.rows.length <= FIRST;
  more.textContent = `Show all ${view.rows.length}`;
  more.addEventListener("click", () => { draw(Infinity); more.hidden = true; });
  $(".card", section).append(tools([csvTool("separation", view.header, () => view.rows.map((row) => row.cells))]));
}

function drawPairs(view) {
  const section = $("#pairs");
  section.hidden = false;
  $(".lead", section).textContent = view.lead;
  rows($("table", section), view.header, view.rows);
  $(".card", section).append(tools([csvTool("pairs", view.header, () => view.rows)]));
}
