// The components as bars: pick one, sort it, search all of them.
function drawComponents(view) {
  const section = $("#components");
  section.hidden = false;
  $("h2", section).textContent = view.title;
  $(".lead", section).textContent = view.lead;
  const { names, variables, others } = view;
  const beside = Boolean(view.secondTitle);
  chooseWeightPower(view.entries.flatMap((entry) => (view.secondSigned ? [entry.weights, entry.second] : [entry.weights])));
  // [variable, weight, second] of each entry; made when first asked for.
  const made = [];
  const listOf = (k) => (made[k] ??= view.entries[k].variables.map((v, n) => [v, view.entries[k].weights[n], beside ? view.entries[k].second[n] : 0]));
  // A variable with weight 0 that is shown for its second value alone is no part of the component.
  const inside = ([, w]) => view.either || w !== 0;
  const body = $("#bars tbody");
  const search = $("#search");
  search.placeholder = `Find a ${view.variable}   ( / )`;
  const FEW = 60, MANY = 1000;
  let current = 0, order = "size", most = FEW;
  $("#bars").classList.toggle("paired", beside);
  $("#bars .second-title").textContent = view.secondTitle;

  // Where else a variable stands, for the hover and the search: variable -> [[component, weight], ...].
  let standing = null;
  function places(v) {
    if (!standing) {
      standing = variables.map(() => []);
      names.forEach((_, k) => listOf(k).filter(inside).forEach(([u, w]) => standing[u].push([k, w])));
    }
    return standing[v];
  }

  const orders = {
    size: (a, b) => Math.abs(b[1]) - Math.abs(a[1]),
    weight: (a, b) => b[1] - a[1],
    name: (a, b) => alphabet.compare(variables[a[0]], variables[b[0]]),
    second: (a, b) => Math.abs(b[2]) - Math.abs(a[2]) || Math.abs(b[1]) - Math.abs(a[1]),
  };
  const secondText = (s) => (view.secondSigned ? decimals(s) : Math.round(100 * s) + " %");

  function describe(entry) {
    const here = places(entry[0]);
    return (beside ? `${view.secondTitle}  ${secondText(entry[2])}\n` : "")
      + (inside(entry) ? "" : `not in ${names[current]}\n`)
      + here.map(([k, w]) => `${names[k]}  ${signed(w)}`).slice(0, 12).join("\n")
      + (here.length > 12 ? `\n… and ${here.length - 12} more` : "");
  }

  function found(name, text) {
    const at = name.toLowerCase().indexOf(text);
    if (!text || at < 0) return [document.createTextNode(name)];
    return [name.slice(0, at), element("mark", { text: name.slice(at, at + text.length) }), name.slice(at + text.length)];
  }

  function barCell(value, largest, mixed, kind) {
    const bar = element("i", { class: value < 0 ? "minus" : null });
    const share = (Math.abs(value) / largest) * (mixed ? 49 : 98);
    bar.style.width = share + "%";
    bar.style.left = mixed ? (value < 0 ? 50 - share : 50) + "%" : "0";
    const axis = element("b");
    axis.style.left = mixed ? "50%" : "0";
    return element("td", { class: kind }, axis, ...(value ? [bar] : []));
  }

  function row(entry, { largest, mixed }, text) {
    const [v, w, s] = entry, name = variables[v];
    const line = element("tr", { tabindex: "-1", class: inside(entry) ? null : "outside" },
      element("th", { scope: "row" }, ...found(name, text)),
      barCell(w, largest, mixed, "bar"),
      element("td", { class: "number", text: decimals(w) }),
      ...(beside ? [view.secondSigned ? barCell(s, largest, mixed, "bar second") : barCell(s, 1, false, "bar second"),
        element("td", { class: "number", text: secondText(s) })] : []));
    const tell = (x, y) => showTip(x, y, name, describe(entry));
    line.addEventListener("pointermove", (event) => tell(event.clientX, event.clientY));
    line.addEventListener("pointerleave", hideTip);
    line.addEventListener("focus", () => { const box = line.getBoundingClientRect(); tell(box.left + box.width / 2, box.bottom - 10); });
    line.addEventListener("blur", hideTip);
    return line;
  }

  const has = (name, text) => name.toLowerCase().includes(text);
  const wanted = () => search.value.trim().toLowerCase();
  function sorted(belongs) {
    const list = listOf(current).filter(belongs).sort(orders[order]), text = wanted();
    return text ? list.filter(([v]) => has(variables[v], text)) : list;
  }
  const matching = () => sorted(inside);
  const outside = () => sorted((entry) => !inside(entry));
  // The bars of a component share one scale, those of another result too.
  function bounds() {
    let largest = 1e-300, plus = false, minus = false;
    for (const [, w, s] of listOf(current)) {
      for (const value of view.secondSigned ? [w, s] : [w]) {
        largest = Math.max(largest, Math.abs(value));
        if (value > 0) plus = true;
        if (value < 0) minus = true;
      }
    }
    return { largest, mixed: plus && minus };
  }

  function draw() {
    const text = wanted(), matches = matching(), rejected = outside(), scale = bounds(), amount = listOf(current).filter(inside).length;
    const all = [...matches, ...rejected], shown = all.slice(0, most);
    body.replaceChildren(...shown.map((entry) => row(entry, scale, text)));
    if (body.firstChild) body.firstChild.tabIndex = 0;
    $("caption", $("#bars")).textContent = `${names[current]}: ${view.weight} of its variables`;
    const kept = view.cut[current] ? `, the largest of ${view.cut[current].toLocaleString("en")}` : "";
    $("#shown").textContent = (text
      ? `${matches.length} of ${amount.toLocaleString("en")} in ${names[current]} contain “${search.value.trim()}”`
      : `${amount.toLocaleString("en")} ${view.entry}${amount === 1 ? "" : "s"} in ${names[current]}${kept}${inUnits()}`)
      + (rejected.length ? `. Below them in grey, ${rejected.length.toLocaleString("en")} with weight 0, shown for “${view.secondTitle}”: `
        + `not part of ${names[current]}, neither copied nor downloaded.` : "");
    const more = $("#more"), rest = all.length - shown.length;
    more.hidden = rest === 0;
    more.textContent = rest > MANY ? `Show ${MANY.toLocaleString("en")} more` : `Show all ${all.length.toLocaleString("en")}`;
    elsewhere(text);
  }

  function elsewhere(text) {
    const place = $("#elsewhere");
    place.replaceChildren();
    if (!text) return;
    const here = new Set(listOf(current).map(([v]) => v));
    const hits = [], absent = others.filter((name) => has(name, text));
    variables.forEach((name, v) => {
      if (!has(name, text) || here.has(v)) return;
      if (view.cut[current]) absent.push(name);
      for (const [k, w] of places(v)) hits.push([name, k, w]);
    });
    if (hits.length) {
      place.append("Elsewhere: ", ...hits.slice(0, 12).map(([name, k, w]) =>
        element("button", { type: "button", text: `${name} in ${names[k]} (${signed(w)})`, onclick: () => choose(k) })),
        hits.length > 12 ? `and ${hits.length - 12} more` : "");
    }
    if (view.cut[current] && absent.length) {
      const few = absent.slice(0, 5).join(", ") + (absent.length > 5 ? ` and ${absent.length - 5} more` : "");
      place.append(element("span", { text: ` Not among the ${here.size.toLocaleString("en")} largest of the ${view.cut[current].toLocaleString("en")} `
        + `${view.weight} of ${names[current]} that this page holds: ${few}. components.csv has them all.` }));
    } else if (!hits.length && !body.firstChild) {
      place.textContent = view.othersCut
        ? `No name of a ${view.variable} in this page contains “${search.value.trim()}”; components.csv has them all.`
        : `No ${view.variable} with a weight in any ${view.noun} has a name that contains “${search.value.trim()}”.`;
      if (absent.length) place.textContent = `${absent.slice(0, 5).join(", ")}: no weight in ${names[current]}.`;
    }
  }

  // What can be taken along: the component as it is sorted and searched, or all of them.
  const lines = (list, k) => list.map(([v, w, s]) => [...(k === undefined ? [] : [names[k]]), variables[v], w, ...(beside ? [s] : [])]);
  const header = [view.variable, "weight", ...(beside ? [view.secondTitle] : [])];
  $("#panel").append(tools([
    ["Copy names", "The names in this order, one per line", (button) => copied(button, matching().map(([v]) => variables[v]).join("\n"))],
    ["Copy with weights", "Names and weights, for a spreadsheet", (button) => copied(button, matching().map(([v, w]) => `${variables[v]}\t${w}`).join("\n"))],
    [`Download ${view.noun} (CSV)`, "", () => save(fileName(names[current]) + ".csv", "text/csv", csv(header, lines(matching())))],
    ["Download all (CSV)", "", () => save(fileName(view.title) + ".csv", "text/csv",
      csv([view.noun, ...header], names.flatMap((_, k) => lines(listOf(k).filter(inside).sort(orders.size), k))))],
    ["Download figure (SVG)", "The bars in this order", () => save(fileName(names[current]) + ".svg", "image/svg+xml", figure())],
  ]));

  // The bars as a drawing of their own: a table can not be saved as one.
  function figure() {
    const list = matching().slice(0, most), { largest, mixed } = bounds();
    const width = beside ? 860 : 640, top = 34, step = 20, height = top + step * list.length + 10;
    const colour = (value) => (value < 0 ? "var(--minus)" : "var(--plus)");
    const svg = element("svg", { viewBox: `0 0 ${width} ${height}` }, element("text", { x: 12, y: 20, "font-weight": 700, text: names[current] + inUnits() }));
    const bar = (value, left, span, both, largest, y) => {
      const size = (Math.abs(value) / largest) * (both ? span / 2 : span), zero = left + (both ? span / 2 : 0);
      const node = element("rect", { x: value < 0 ? zero - size : zero, y: y - 11, width: size, height: 13, rx: 2 });
      node.style.fill = colour(value);
      return node;
    };
    list.forEach(([v, w, s], n) => {
      const y = top + step * n + 14, name = variables[v];
      svg.append(element("text", { x: 12, y, text: name.length > 28 ? name.slice(0, 27) + "…" : name }), bar(w, 220, 330, mixed, largest, y),
        element("text", { x: 622, y, "text-anchor": "end", text: decimals(w) }));
      if (beside) svg.append(bar(s, 640, 150, view.secondSigned && mixed, view.secondSigned ? largest : 1, y), element("text", { x: 848, y, "text-anchor": "end", text: secondText(s) }));
    });
    if (beside) svg.append(element("text", { x: 640, y: 20, text: view.secondTitle }));
    const holder = element("div", { class: "plot drawing" }, svg);
    document.body.append(holder);
    const text = standalone(svg);
    holder.remove();
    return text;
  }

  const tabs = names.map((name, k) => {
    const track = element("i");
    const share = view.share ? view.share[k] : null;
    if (view.share) track.style.width = Math.max(2, (100 * share) / Math.max(...view.share)) + "%";
    const tab = element("button", { type: "button", role: "tab", id: `tab-${k}`, "aria-controls": "panel", onclick: () => choose(k) },
      element("span", { class: "row" }, element("span", { text: name }),
        element("span", { text: share === null ? `${listOf(k).filter(inside).length}` : percent(share) })));
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
    most = FEW;
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
  $("[data-sort=second]").hidden = !beside;
  $("[data-sort=second]").textContent = view.secondTitle;
  search.addEventListener("input", draw);
  $("#more").addEventListener("click", () => { most += MANY; draw(); });
  go.component = choose;
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

  // On paper there is nothing to pick: every component with its variables; made when the page is about to be printed.
  const PRINTED = 250;
  const printed = () => {
    if ($("#printed").firstChild) return;
    $("#printed").append(...names.map((name, k) => {
      const list = listOf(k).filter(inside).sort(orders.size), total = view.cut[k] || list.length;
      return element("section", {},
        element("h3", { text: name + (view.share ? `, ${percent(view.share[k])}` : "") }),
        ...(beside ? [element("div", {}, element("span", { text: "" }), element("span", { text: view.secondTitle }))] : []),
        ...list.slice(0, PRINTED).map(([v, w, s]) =>
          element("div", {}, element("span", { text: variables[v] }), element("span", { text: signed(w) + (beside ? ` · ${secondText(s)}` : "") }))),
        ...(total > PRINTED ? [element("div", {}, element("span", { text: `and ${(total - PRINTED).toLocaleString("en")} smaller ones, in components.csv` }))] : []));
    }));
  };
  onPrint(printed);
  // A window hidden when the page loads has no layout to scroll in; choosing does not depend on it.
  const top = scrollY;
  choose(0);
  scrollTo(0, top);
}
