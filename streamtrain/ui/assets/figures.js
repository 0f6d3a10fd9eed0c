// Draws what a JSON route tells of each chart of a page, again and again: lines and outlines of histograms.
import { echarts } from "nicegui-echart";
import { call, givePictures } from "./cards.js";
import { axes, COLOURS, dark, number } from "./look.js";

const settings = JSON.parse(document.getElementById("st-settings").textContent);
const EVERY_MS = 1000;
const known = {}; // by chart: what was drawn last, as text

function draw(name, chart) {
  const card = document.querySelector(`[data-chart="${name}"]`);
  if (!card) return;
  const lines = chart.lines.filter((line) => line.points.length > 0);
  if (card.hidden !== !lines.length) {
    card.hidden = !lines.length;
    known[name] = "";
  }
  const text = JSON.stringify([chart, dark()]);
  if (!lines.length || known[name] === text) return;
  const drawing = echarts.getInstanceByDom(document.getElementById(settings.elements[name]));
  if (!drawing) return;
  known[name] = text;
  drawing.resize();
  call(card, chart.title);
  const { x, y, legend } = axes("value");
  const across = chart.across === null ? undefined : { silent: true, symbol: "none", label: { show: true, formatter: number(chart.across), color: y.axisLabel.color }, lineStyle: { color: "#d55e00", type: "dotted" }, data: [{ yAxis: chart.across }] };
  const within = (edge, values) => (chart.across === null ? undefined : edge(...values, chart.across));
  const values = lines.flatMap((line) => line.points.map(([, value]) => value));
  drawing.setOption(
    {
      animation: false,
      color: COLOURS,
      grid: { left: 8, right: 24, top: 12, bottom: 36, containLabel: true },
      xAxis: { ...x, axisLine: { onZero: false }, minInterval: chart.x === "version" ? 1 : 0 },
      yAxis: { ...y, axisLine: { onZero: false }, min: within(Math.min, values), max: within(Math.max, values) },
      legend,
      dataZoom: [{ type: "inside", filterMode: "none" }],
      tooltip: { trigger: "axis", confine: true, valueFormatter: (value) => (value === undefined ? "–" : number(value)) },
      series: lines.map((line, at) => ({
        name: line.name,
        type: "line",
        step: line.steps ? "end" : false,
        showSymbol: line.points.length < 2,
        areaStyle: line.steps && !line.aside ? { opacity: 0.25 } : undefined,
        lineStyle: { width: line.aside ? 1.5 : 2, type: line.aside ? "dashed" : "solid" },
        data: line.points,
        markLine: at === 0 ? across : undefined,
      })),
    },
    { replaceMerge: ["series"] },
  );
  const last = lines.slice(0, 4).map((line) => number(line.points.at(-1)[1]));
  card.querySelector(".st-last").textContent = chart.x === "version" ? last.join(" · ") : "";
}

async function go() {
  try {
    if (!document.hidden) {
      const answer = await fetch(`${settings.prefix}${settings.path}?${new URLSearchParams(settings.asked)}`);
      if (answer.ok) for (const [name, chart] of Object.entries((await answer.json()).charts)) draw(name, chart);
    }
  } catch {
    // the server is away: NiceGUI says so, and the next look asks again
  }
  setTimeout(go, EVERY_MS);
}

givePictures(settings.elements, (_, card) => `${settings.name}.${card.ariaLabel}`);
go();
