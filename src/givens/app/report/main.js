// Fill the page.
document.title = data.title;
$("#title").textContent = data.title;
$("#subtitle").textContent = data.subtitle;
$("#made").textContent = data.made;
$("#facts").append(...data.facts.map(({ label, value, note }) => element("div", {},
  element("dt", { text: label }),
  element("dd", {}, element("div", { class: "value", text: value }), element("div", { class: "note", text: note })))));
if (data.warnings.length) {
  $("#warnings").hidden = false;
  $("#warnings").append(...data.warnings.map((text) => element("li", { text })));
}
if (data.notes.length) {
  $("#notes").hidden = false;
  $("#notes ul").append(...data.notes.map((text) => element("li", { text })));
}
if (data.sources) drawSources(data.sources);
if (data.components) drawComponents(data.components);
if (data.pairs) drawPairs(data.pairs);
if (data.separation) drawSeparation(data.separation);
if (data.heatMap) drawHeatMap(data.heatMap);
if (data.scores) drawScores(data.scores);
if (data.path) drawLine($("#path"), data.path);
if (data.trace) drawLine($("#convergence"), data.trace);
if (data.diagnostics.length) {
  $("#diagnostics").hidden = false;
  const header = ["What", "Value", "What it means"], lines = data.diagnostics.map(({ name, value, meaning }) => [name, value, meaning]);
  rows($("#diagnostics table"), header, lines);
  $("#diagnostics .card").append(tools([csvTool("diagnostics", header, () => lines)]));
}
$("#method").hidden = false;
if (data.command) $("#command").append(element("pre", { text: data.command }), copyButton(data.command));
rows($("#settings"), null, data.settings);
if (data.settings.length) $("#settings").after(tools([csvTool("settings", ["setting", "value"], () => data.settings)]));
$("#cite").append(...data.citations.flatMap(({ text, bibtex }) => [element("p", { text }), element("pre", { text: bibtex }), copyButton(bibtex)]));

const sections = [...document.querySelectorAll("section[data-title]")].filter((section) => !section.hidden);
const links = sections.map((section) => element("a", { href: "#" + section.id, text: section.dataset.title }));
if (data.components) links[sections.findIndex((section) => section.id === "components")].textContent = data.components.title;
$("#contents").append(...links);
const spy = () => {
  let at = 0;
  // At the top of the page it is the first section, however tall the window is.
  if (scrollY > 0) sections.forEach((section, k) => { if (section.getBoundingClientRect().top < innerHeight * 0.35) at = k; });
  if (scrollY > 0 && innerHeight + scrollY >= document.body.scrollHeight - 4) at = sections.length - 1;
  links.forEach((link, k) => (k === at ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current")));
};
addEventListener("scroll", spy, { passive: true });
spy();
