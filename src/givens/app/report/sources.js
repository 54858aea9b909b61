// Sources: a table to sort, and of the chosen one its time course with a zoom, its spectrum and, where places are known, a map.
function drawSources(view) {
  const section = $("#sources");
  section.hidden = false;
  $(".lead", section).textContent = view.lead;
  const columns = [["Source", view.share.map((_, k) => k + 1), (v) => String(v)], ["Explained", view.share, percent],
    ["Kurtosis", view.kurtosis, (v) => number(v)]];
  if (view.stability) columns.push(["Stability", view.stability, (v) => v.toFixed(3)]);
  let chosen = 0, sorted = 0, falling = false, first = 0, shown = view.times.length;
  const table = $("table", section), time = $("#time-course"), spectrum = $("#spectrum"), map = $("#map");
  const pan = $("#pan");

  function list() {
    const values = columns[sorted][1];
    const order = values.map((_, k) => k).sort((a, b) => (falling ? values[b] - values[a] : values[a] - values[b]) || a - b);
    table.replaceChildren(
      element("thead", {}, element("tr", {}, ...columns.map(([name], c) => element("th", { scope: "col", "aria-sort": c === sorted ? (falling ? "descending" : "ascending") : "none" },
        element("button", { type: "button", class: "link", text: name + (c === sorted ? (falling ? " ▾" : " ▴") : ""), onclick: () => {
          falling = c === sorted ? !falling : c > 0;
          sorted = c;
          list();
        } }))))),
      element("tbody", {}, ...order.map((k) => element("tr", { "aria-selected": String(k === chosen), onclick: () => choose(k) },
        ...columns.map(([, amounts, write], c) => (c
          ? element("td", { text: write(amounts[k]) })
          : element("th", { scope: "row" }, element("button", { type: "button", class: "link", text: write(amounts[k]) }))))))));
  }

  function drawTime() {
    const part = (values) => values.slice(first, first + shown);
    const x = part(view.times), low = part(view.low[chosen]), high = part(view.high[chosen]);
    const plot = frame(time, { height: 240, xTitle: view.timeTitle, yTitle: `source ${chosen + 1}, standard deviations`, label: `Time course of source ${chosen + 1}`,
      x: { values: x, margin: 0 }, y: { values: [...low, ...high], axis: true } });
    const upper = x.map((t, k) => ({ x: plot.across(t), y: plot.up(high[k]) })), lower = x.map((t, k) => ({ x: plot.across(t), y: plot.up(low[k]) }));
    plot.svg.append(element("path", { class: "band", d: curve([...upper, ...lower.reverse()]) + "Z" }));
    pan.max = Math.max(0, view.times.length - shown);
    pan.value = first;
    pan.disabled = shown >= view.times.length;
  }

  function drawSpectrum() {
    const y = view.decibels[chosen];
    const plot = frame(spectrum, { height: 240, xTitle: view.frequencyTitle, yTitle: "power, dB", label: `Spectrum of source ${chosen + 1}`,
      x: { values: view.frequencies, margin: 0 }, y: { values: y } });
    const points = y.map((v, k) => ({ x: plot.across(view.frequencies[k]), y: plot.up(v), title: `${number(view.frequencies[k])}`, text: `${v.toFixed(1)} dB` }));
    plot.svg.append(element("path", { class: "line", d: curve(points) }));
    explore(plot, points, () => true, 60);
  }

  function drawMap() {
    if (!view.map) return;
    const { names, x, y, weights } = view.map, w = weights[chosen];
    const svg = element("svg", { viewBox: "-1.25 -1.3 2.5 2.5", role: "img", "aria-label": `Mixing weights of source ${chosen + 1}, seen from above` },
      element("circle", { class: "head", r: 1.12 }), element("path", { class: "head", d: "M-0.13,-1.11L0,-1.26L0.13,-1.11" }));
    names.forEach((name, k) => {
      const spot = element("circle", { cx: x[k], cy: -y[k], r: 0.035 + 0.085 * Math.abs(w[k]) });
      spot.style.fill = `var(${w[k] < 0 ? "--minus" : "--plus"})`;
      spot.addEventListener("pointermove", (event) => showTip(event.clientX, event.clientY, name, signed(w[k])));
      spot.addEventListener("pointerleave", hideTip);
      svg.append(spot);
    });
    map.hidden = false;
    $(".drawn", map).replaceChildren(svg);
  }

  function draw() { drawTime(); drawSpectrum(); drawMap(); }
  function choose(k) { chosen = k; list(); draw(); }
  function zoom(factor) {
    const middle = first + shown / 2, all = view.times.length;
    shown = Math.round(Math.min(all, Math.max(Math.min(20, all), shown * factor)));
    first = Math.round(Math.min(all - shown, Math.max(0, middle - shown / 2)));
    drawTime();
  }
  for (const button of section.querySelectorAll("[data-zoom]")) button.addEventListener("click", () => zoom(+button.dataset.zoom));
  pan.addEventListener("input", () => { first = +pan.value; drawTime(); });
  list();
  draw();
  new ResizeObserver(draw).observe(time);
}
