// Loadings before and after a rotation: one row for each variable, a cell for each factor, coloured by size and sign.
function drawHeatMap(view) {
  const section = $("#heat-map");
  section.hidden = false;
  $(".lead", section).textContent = view.lead;
  const table = $("table", section);
  const parts = [["Before", view.before], ["After", view.after]];
  const largest = Math.max(1e-300, ...parts.flatMap(([, part]) => part.values.flat().map(Math.abs)));
  // Many factors are shown by colour alone; pointing at a cell tells its number.
  const wide = view.before.names.length > 12;
  table.classList.toggle("wide", wide);

  function cell(name, part, k, value, first) {
    const node = element("td", { class: first ? "first" : null, text: wide ? "" : value.toFixed(2).replace("-", "−") });
    node.style.background = `color-mix(in srgb, var(${value < 0 ? "--minus" : "--plus"}) ${Math.round((72 * Math.abs(value)) / largest)}%, transparent)`;
    node.addEventListener("pointermove", (event) => showTip(event.clientX, event.clientY, name, `${part.names[k]}  ${signed(value)}`));
    node.addEventListener("pointerleave", hideTip);
    return node;
  }

  function draw(rows) {
    table.replaceChildren(
      element("thead", {},
        element("tr", {}, element("td"), ...parts.map(([title, part]) => element("th", { scope: "colgroup", colspan: part.names.length, text: title }))),
        element("tr", {}, element("td"), ...parts.flatMap(([, part]) => part.names.map((name, k) =>
          element("th", { scope: "col", class: k ? null : "first", title: name, text: String(k + 1) }))))),
      element("tbody", {}, ...rows.map((r) => element("tr", {}, element("th", { scope: "row", text: view.variables[r] }),
        ...parts.flatMap(([, part]) => part.values[r].map((value, k) => cell(view.variables[r], part, k, value, k === 0)))))));
  }

  const byFactor = view.variables.map((_, r) => r);
  const asGiven = [...byFactor].sort((a, b) => view.places[a] - view.places[b]);
  for (const button of section.querySelectorAll("[data-rows]")) {
    button.addEventListener("click", () => {
      for (const other of section.querySelectorAll("[data-rows]")) other.setAttribute("aria-pressed", other === button);
      draw(button.dataset.rows === "factor" ? byFactor : asGiven);
    });
  }
  draw(byFactor);
  const header = ["variable", ...parts.flatMap(([title, part]) => part.names.map((name) => `${title.toLowerCase()}: ${name}`))];
  $(".card", section).append(tools([csvTool("loadings", header, () => view.variables.map((name, r) => [name, ...parts.flatMap(([, part]) => part.values[r])]))]));
}
