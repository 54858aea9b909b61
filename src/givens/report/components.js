// The components as bars: pick one, sort it, search all of them.
function drawComponents(view) {
  const section = $("#components");
  section.hidden = false;
  $("h2", section).textContent = view.title;
  $(".lead", section).textContent = view.lead;
  const { names, variables, entries } = view;
  const body = $("#bars tbody");
  const search = $("#search");
  search.placeholder = `Find a ${view.variable}   ( / )`;
  const FEW = 60;
  let current = 0, order = "size", all = false;

  // Where else a variable stands, for the hover: variable -> [[component, weight], ...].
  const places = variables.map(() => []);
  entries.forEach((list, k) => list.forEach(([v, w]) => places[v].push([k, w])));

  const orders = {
    size: (a, b) => Math.abs(b[1]) - Math.abs(a[1]),
    weight: (a, b) => b[1] - a[1],
    name: (a, b) => variables[a[0]].localeCompare(variables[b[0]], "en", { numeric: true }),
  };

  function describe(v) {
    return places[v].map(([k, w]) => `${names[k]}  ${signed(w)}`).slice(0, 12).join("\n")
      + (places[v].length > 12 ? `\n… and ${places[v].length - 12} more` : "");
  }

  function found(name, text) {
    const at = name.toLowerCase().indexOf(text);
    if (!text || at < 0) return [document.createTextNode(name)];
    return [name.slice(0, at), element("mark", { text: name.slice(at, at + text.length) }), name.slice(at + text.length)];
  }

  function row([v, w], largest, mixed, text) {
    const name = variables[v];
    const bar = element("i", { class: w < 0 ? "minus" : null });
    const share = (Math.abs(w) / largest) * (mixed ? 49 : 98);
    bar.style.width = share + "%";
    bar.style.left = mixed ? (w < 0 ? 50 - share : 50) + "%" : "0";
    const axis = element("b");
    axis.style.left = mixed ? "50%" : "0";
    const line = element("tr", { tabindex: "-1" },
      element("th", { scope: "row" }, ...found(name, text)),
      element("td", { class: "bar" }, axis, bar),
      element("td", { class: "number", text: signed(w) }));
    const tell = (x, y) => showTip(x, y, name, describe(v));
    line.addEventListener("pointermove", (event) => tell(event.clientX, event.clientY));
    line.addEventListener("pointerleave", hideTip);
    line.addEventListener("focus", () => { const box = line.getBoundingClientRect(); tell(box.left + box.width / 2, box.bottom - 10); });
    line.addEventListener("blur", hideTip);
    return line;
  }

  function draw() {
    const list = [...entries[current]].sort(orders[order]);
    const text = search.value.trim().toLowerCase();
    const matches = text ? list.filter(([v]) => variables[v].toLowerCase().includes(text)) : list;
    const largest = Math.max(...list.map(([, w]) => Math.abs(w)), 1e-300);
    const mixed = list.some(([, w]) => w > 0) && list.some(([, w]) => w < 0);
    const shown = all ? matches : matches.slice(0, FEW);
    body.replaceChildren(...shown.map((entry) => row(entry, largest, mixed, text)));
    if (body.firstChild) body.firstChild.tabIndex = 0;
    $("caption", $("#bars")).textContent = `${names[current]}: ${view.weight} of its variables`;
    const kept = view.cut && view.cut[current] ? `, the largest of ${view.cut[current].toLocaleString("en")}` : "";
    $("#shown").textContent = text
      ? `${matches.length} of ${list.length.toLocaleString("en")} in ${names[current]} match “${search.value.trim()}”`
      : `${list.length.toLocaleString("en")} ${view.entry}${list.length === 1 ? "" : "s"} in ${names[current]}${kept}`;
    const more = $("#more");
    more.hidden = shown.length === matches.length;
    more.textContent = `Show all ${matches.length.toLocaleString("en")}`;
    elsewhere(text);
  }

  function elsewhere(text) {
    const place = $("#elsewhere");
    place.replaceChildren();
    if (!text) return;
    const here = new Set(entries[current].map(([v]) => v));
    const hits = [];
    variables.forEach((name, v) => {
      if (!name.toLowerCase().includes(text) || here.has(v)) return;
      for (const [k, w] of places[v]) hits.push([name, k, w]);
    });
    if (!hits.length) {
      if (!body.firstChild) place.textContent = `No variable with a weight in any ${view.noun} has “${search.value.trim()}” in its name.`;
      return;
    }
    place.append("Elsewhere: ", ...hits.slice(0, 12).map(([name, k, w]) =>
      element("button", { type: "button", text: `${name} in ${names[k]} (${signed(w)})`, onclick: () => choose(k) })),
      hits.length > 12 ? `and ${hits.length - 12} more` : "");
  }

  const tabs = names.map((name, k) => {
    const track = element("i");
    const share = view.share ? view.share[k] : null;
    if (view.share) track.style.width = Math.max(2, (100 * share) / Math.max(...view.share)) + "%";
    const tab = element("button", { type: "button", role: "tab", id: `tab-${k}`, "aria-controls": "panel", onclick: () => choose(k) },
      element("span", { class: "row" }, element("span", { text: name }),
        element("span", { text: share === null ? `${entries[k].length}` : percent(share) })));
    if (view.share) tab.append(element("span", { class: "track" }, track));
    return tab;
  });
  tabs.forEach((tab) => { const t = $(".track", tab); if (t) t.style.display = "block"; });
  $("#picker").append(...tabs);
  $("#picker").setAttribute("aria-label", view.title);
  $("#picker").addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    const to = event.key === "Home" ? 0 : event.key === "End" ? tabs.length - 1 : step ? current + step : null;
    if (to === null || to < 0 || to >= tabs.length) return;
    event.preventDefault();
    choose(to);
    tabs[to].focus();
  });

  function choose(k) {
    current = k;
    all = false;
    tabs.forEach((tab, j) => { tab.setAttribute("aria-selected", j === k); tab.tabIndex = j === k ? 0 : -1; });
    $("#panel").setAttribute("aria-labelledby", `tab-${k}`);
    tabs[k].scrollIntoView({ block: "nearest", inline: "nearest" });
    draw();
  }

  for (const button of document.querySelectorAll("[data-sort]")) {
    button.addEventListener("click", () => {
      order = button.dataset.sort;
      for (const other of document.querySelectorAll("[data-sort]")) other.setAttribute("aria-pressed", other === button);
      draw();
    });
  }
  search.addEventListener("input", draw);
  $("#more").addEventListener("click", () => { all = true; draw(); });
  body.addEventListener("keydown", (event) => {
    const to = { ArrowDown: "nextSibling", ArrowUp: "previousSibling" }[event.key];
    if (!to || !document.activeElement[to]) return;
    event.preventDefault();
    document.activeElement[to].focus();
  });
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || ["INPUT", "SELECT", "TEXTAREA"].includes(document.activeElement.tagName)) return;
    event.preventDefault();
    search.focus();
  });

  // On paper there is nothing to pick: every component with its largest variables.
  $("#printed").append(...entries.map((list, k) => element("section", {},
    element("h3", { text: names[k] + (view.share ? `, ${percent(view.share[k])}` : "") }),
    ...[...list].sort(orders.size).slice(0, 15).map(([v, w]) =>
      element("div", {}, element("span", { text: variables[v] }), element("span", { text: signed(w) }))),
    ...(list.length > 15 ? [element("div", {}, element("span", { text: `and ${list.length - 15} more` }))] : []))));
  // A window hidden when the page loads has no layout to scroll in; choosing does not depend on it.
  const top = scrollY;
  choose(0);
  scrollTo(0, top);
}
