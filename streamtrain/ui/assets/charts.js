// Draws the charts of a page and goes on drawing them: points by a JSON route, only those that are new, once a second.
import { echarts } from "nicegui-echart";
import { call, givePictures } from "./cards.js";
import { axes as axesOf, COLOURS, number } from "./look.js";

const settings = JSON.parse(document.getElementById("st-settings").textContent);
const EVERY_MS = 1000;
const MOST_POINTS = 4000; // of a line; then it is asked for anew, thinned
const HAPPENED = "happened";
const lines = {}; // by chart, by line's name: {aside, points}
const after = {}; // by "job chart": the last point drawn
const axes = () => axesOf(settings.x === "rows" ? "value" : "time");

const chartOf = (name) => echarts.getInstanceByDom(document.getElementById(settings.elements[name]));
const cardOf = (name) => document.querySelector(`[data-chart="${name}"]`);

function draw(name, faults) {
  const chart = chartOf(name);
  const found = Object.entries(lines[name] || {}).filter(([, line]) => line.points.length > 0);
  if (!chart || !found.length) return;
  const { x, y, legend } = axes();
  const unit = settings.units[name];
  chart.setOption(
    {
      animation: false,
      color: COLOURS,
      grid: { left: 8, right: 12, top: 12, bottom: 36, containLabel: true },
      xAxis: x,
      yAxis: y,
      legend,
      dataZoom: [{ type: "inside", filterMode: "none" }],
      tooltip: { trigger: "axis", confine: true, valueFormatter: (value) => (value === undefined ? "–" : `${number(value)}${unit ? ` ${unit}` : ""}`) },
      series: found.map(([label, line], at) => ({
        name: label,
        type: "line",
        showSymbol: line.points.length < 2,
        lineStyle: { width: line.aside ? 1 : 2, type: line.aside ? "dashed" : "solid" },
        data: line.points,
        markLine: at === 0 && faults.length ? { silent: true, symbol: "none", label: { show: false }, lineStyle: { color: "#d55e00", type: "dotted" }, data: faults.map((mark) => ({ xAxis: mark.at })) } : undefined,
      })),
    },
    { replaceMerge: ["series"] },
  );
  const last = found.slice(0, 4).map(([, line]) => number(line.points.at(-1)[1]));
  cardOf(name).querySelector(".st-last").textContent = `${last.join(" · ")}${unit ? ` ${unit}` : ""}`;
}

function drawHappened(marks) {
  cardOf(HAPPENED).hidden = !marks.length;
  const chart = chartOf(HAPPENED);
  if (!chart || !marks.length) return;
  const kinds = [...new Set(marks.map((mark) => mark.kind))];
  const { x, y } = axes();
  chart.setOption(
    {
      animation: false,
      grid: { left: 8, right: 12, top: 12, bottom: 8, containLabel: true },
      xAxis: { ...x, min: "dataMin" },
      yAxis: { type: "category", data: kinds, axisLabel: { ...y.axisLabel, formatter: undefined }, splitLine: { show: true, ...y.splitLine } },
      tooltip: { trigger: "item", confine: true, formatter: ({ data }) => echarts.format.encodeHTML(data.text) },
      series: [{
        type: "scatter",
        symbolSize: 12,
        data: marks.map((mark) => ({
          value: [mark.at, mark.kind],
          text: mark.job ? `${mark.job}: ${mark.text}` : mark.text,
          symbol: mark.fault ? "diamond" : "circle",
          itemStyle: { color: mark.fault ? "#d55e00" : "#0072b2" },
        })),
      }],
    },
    { replaceMerge: ["series"] },
  );
}

function take(name, found) {
  const own = (lines[name] ??= {});
  for (const { job, anew, title, after: last, lines: drawn } of found) {
    if (title) call(cardOf(name), title);
    after[`${job} ${name}`] = last;
    for (const { name: label, aside, points } of drawn) {
      const line = (own[label] ??= { aside, points: [] });
      line.points = anew ? points : line.points.concat(points);
      if (line.points.length > MOST_POINTS) after[`${job} ${name}`] = -1;
    }
  }
  const card = cardOf(name);
  const empty = !Object.values(own).some((line) => line.points.length > 0);
  if (card.hidden !== empty) {
    card.hidden = empty;
    chartOf(name)?.resize();
  }
}

async function look() {
  const asked = new URLSearchParams([...settings.jobs.map((job) => ["job", job]), ["x", settings.x], ["of", settings.of], ["after", JSON.stringify(after)]]);
  const answer = await fetch(`${settings.prefix}/api/points?${asked}`);
  if (!answer.ok) return;
  const { charts, marks } = await answer.json();
  const all = marks.flatMap(({ job, marks: own }) => own.map((mark) => ({ ...mark, job: marks.length > 1 ? job : "" })));
  const faults = all.filter((mark) => mark.fault);
  for (const [name, found] of Object.entries(charts)) {
    take(name, found);
    draw(name, faults);
  }
  if (settings.elements[HAPPENED]) drawHappened(all);
}

async function go() {
  try {
    if (!document.hidden) await look();
  } catch {
    // the server is away: NiceGUI says so, and the next look asks again
  }
  setTimeout(go, EVERY_MS);
}

givePictures(settings.elements, (name) => `${settings.jobs.join("-")}.${name}`);
go();
