// The samples as a scatter, coloured (and shaped) by label.
const SHAPES = [
  (x, y, r) => `M${x - r},${y}a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0`,
  (x, y, r) => `M${x},${y - 1.25 * r}L${x + 1.15 * r},${y + 0.8 * r}L${x - 1.15 * r},${y + 0.8 * r}Z`,
  (x, y, r) => `M${x - 0.9 * r},${y - 0.9 * r}h${1.8 * r}v${1.8 * r}h${-1.8 * r}Z`,
  (x, y, r) => `M${x},${y - 1.3 * r}L${x + 1.3 * r},${y}L${x},${y + 1.3 * r}L${x - 1.3 * r},${y}Z`,
  (x, y, r) => `M${x},${y + 1.25 * r}L${x + 1.15 * r},${y - 0.8 * r}L${x - 1.15 * r},${y - 0.8 * r}Z`,
];
const COLOURS = 11;

// Blue through grey to orange: even in lightness, and distinct to readers who do not see red or green.
function heat(t) {
  const stops = [[33, 102, 172], [103, 169, 207], [150, 150, 150], [239, 160, 90], [178, 84, 24]];
  const at = Math.min(3.9999, Math.max(0, t * 4)), k = Math.floor(at), f = at - k;
  return `rgb(${stops[k].map((c, j) => Math.round(c + (stops[k + 1][j] - c) * f)).join(" ")})`;
}

// How a label colours the samples: by classes, the rarest of many together, or on a scale of numbers.
function colouring({ name, levels, codes }) {
  const counts = levels.map(() => 0);
  codes.forEach((code) => { counts[code] += 1; });
  const amounts = levels.map(Number);
  const continuous = levels.length > COLOURS && levels.every((label, k) => label.trim() !== "" && Number.isFinite(amounts[k]));
  let groups = levels.map((_, code) => code).sort((a, b) => counts[b] - counts[a] || alphabet.compare(levels[a], levels[b]));
  const rest = !continuous && groups.length > COLOURS ? groups.splice(COLOURS - 1) : [];
  groups.sort((a, b) => alphabet.compare(levels[a], levels[b]));
  const slot = [];
  groups.forEach((code, k) => { slot[code] = k; });
  rest.forEach((code) => { slot[code] = groups.length; });
  const low = continuous ? Math.min(...amounts) : 0, high = continuous ? Math.max(...amounts) : 1;
  const off = new Set();
  return {
    name, continuous, low, high, off, text: (k) => levels[codes[k]],
    visible: (k) => continuous || !off.has(slot[codes[k]]),
    paint: (k) => {
      if (continuous) return [heat((amounts[codes[k]] - low) / (high - low || 1)), 0];
      const s = slot[codes[k]];
      return s < groups.length ? [`var(--c${s})`, s % SHAPES.length] : ["var(--other)", 0];
    },
    classes: [...groups.map((code) => [levels[code], counts[code]]),
      ...(rest.length ? [[`${rest.length} others`, rest.reduce((sum, code) => sum + counts[code], 0)]] : [])],
    several: groups.length,
  };
}

function drawLegend(legend, colours, redraw) {
  if (!colours) return legend.replaceChildren();
  const { name, continuous, low, high, classes, several, off } = colours;
  if (continuous) {
    const bar = element("span", { class: "scale" });
    bar.style.background = `linear-gradient(90deg, ${[0, 0.25, 0.5, 0.75, 1].map(heat).join(", ")})`;
    return legend.replaceChildren(element("span", { class: "small", text: `${name}: ${number(low)}` }), bar, element("span", { class: "small", text: number(high) }));
  }
  return legend.replaceChildren(element("span", { class: "small", text: name + ":" }), ...classes.map(([label, amount], k) => {
    const swatch = element("path", { d: SHAPES[k < several ? k % SHAPES.length : 0](6.5, 6.5, 5) });
    swatch.style.fill = k < several ? `var(--c${k})` : "var(--other)";
    const button = element("button", { type: "button", "aria-pressed": !off.has(k), title: "Show or hide" },
      element("svg", { viewBox: "0 0 13 13", "aria-hidden": "true" }, swatch), `${label === "" ? "(none)" : label} (${amount.toLocaleString("en")})`);
    button.addEventListener("click", () => {
      off.has(k) ? off.delete(k) : off.add(k);
      button.setAttribute("aria-pressed", !off.has(k));
      redraw();
    });
    return button;
  }));
}

function drawScores(view) {
  const section = $("#scores");
  section.hidden = false;
  $(".lead", section).textContent = view.lead;
  const { axes, values, names } = view;
  const place = $("#scatter"), across = $("#across"), up = $("#up"), by = $("#colour");
  const labels = view.labels.map(colouring);
  axes.forEach((name, k) => { for (const menu of [across, up]) menu.append(element("option", { value: k, text: name })); });
  across.value = 0;
  up.value = Math.min(1, axes.length - 1);
  labels.forEach(({ name }, k) => by.append(element("option", { value: k, text: name || "(label)" })));
  by.append(element("option", { value: -1, text: "nothing" }));
  by.value = labels.length ? 0 : -1;
  by.parentElement.hidden = !labels.length;
  const chosen = () => labels[+by.value];

  function draw() {
    const a = +across.value, b = +up.value, colours = chosen();
    const plot = frame(place, {
      height: Math.max(320, Math.min(540, Math.round((place.clientWidth || 700) * 0.62))),
      xTitle: axes[a], yTitle: axes[b], label: `Scores of ${names.length} samples: ${axes[a]} (horizontal) and ${axes[b]} (vertical)`,
      x: { values: values.map((v) => v[a]), axis: true }, y: { values: values.map((v) => v[b]), axis: true },
    });
    const r = values.length > 1500 ? 2.6 : values.length > 400 ? 3.6 : 5;
    const points = values.map((v, k) => ({
      x: plot.across(v[a]), y: plot.up(v[b]), title: names[k],
      text: labels.map((label) => `${label.name}: ${label.text(k)}\n`).join("") + `${axes[a]}  ${number(v[a])}\n${axes[b]}  ${number(v[b])}`,
    }));
    const visible = (k) => !colours || colours.visible(k);
    const layer = element("g", { "fill-opacity": ".78", "stroke-width": ".8" });
    points.forEach((p, k) => {
      if (!visible(k)) return;
      const [colour, shape] = colours ? colours.paint(k) : ["var(--c0)", 0];
      const mark = element("path", { d: SHAPES[shape](p.x, p.y, r) });
      mark.style.fill = colour;
      mark.style.stroke = "var(--card)";
      layer.append(mark);
    });
    plot.svg.append(layer);
    for (const mark of view.marks || []) {
      plot.svg.append(element("text", { class: "mark", x: plot.across(mark.values[a]), y: plot.up(mark.values[b]), "text-anchor": "middle", dy: ".35em", text: mark.name }));
    }
    explore(plot, points, visible);
  }
  const recolour = () => { drawLegend($("#legend"), chosen(), draw); draw(); };

  across.addEventListener("change", draw);
  up.addEventListener("change", draw);
  by.addEventListener("change", recolour);
  go.colour = (label, axis) => {
    const k = labels.findIndex(({ name }) => name === label);
    if (k >= 0) by.value = k;
    if (axis < axes.length) {
      across.value = axis;
      if (+up.value === axis) up.value = axis ? 0 : Math.min(1, axes.length - 1);
    }
    recolour();
  };
  recolour();
  new ResizeObserver(draw).observe(place);
  const legendFor = (svg) => {
    // The legend stands beside the drawing as buttons; the file has it below, as text.
    const colours = chosen();
    if (!colours || colours.continuous) return svg;
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const twin = svg.cloneNode(false);
    const lines = colours.classes.filter((_, k) => !colours.off.has(k));
    twin.setAttribute("viewBox", `0 0 ${width} ${height + 10 + 18 * lines.length}`);
    twin.append(...[...svg.childNodes]);
    let y = height + 14;
    colours.classes.forEach(([label, amount], k) => {
      if (colours.off.has(k)) return;
      const swatch = element("path", { d: SHAPES[k < colours.several ? k % SHAPES.length : 0](70, y - 4, 5) });
      swatch.style.fill = k < colours.several ? `var(--c${k})` : "var(--other)";
      twin.append(swatch, element("text", { x: 82, y, text: `${label || "(none)"} (${amount})` }));
      y += 18;
    });
    place.replaceChildren(twin);
    return twin;
  };
  const header = ["sample", ...view.labels.map(({ name }) => name), ...axes];
  $(".card", section).append(tools([
    ["Download SVG", "The figure as an SVG file", () => { const text = standalone(legendFor($("svg", place))); draw(); save(fileName("scores", axes[+across.value], axes[+up.value]) + ".svg", "image/svg+xml", text); }],
    csvTool("scores", header, () => names.map((name, k) => [name, ...labels.map((label) => label.text(k)), ...values[k]])),
  ]));
}
