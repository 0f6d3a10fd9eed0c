// How charts look, light and dark.
// told apart by colour-blind people too (Okabe and Ito, 2008)
export const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d00", "#7f7f7f"];

export const dark = () => document.body.classList.contains("body--dark");
export const number = (value) => (Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : Number(value.toPrecision(4)).toString());

export function axes(xType) {
  const colour = dark() ? "#a3adb8" : "#5b6570";
  const rule = { lineStyle: { color: dark() ? "#333a42" : "#d5dae0" } };
  const label = { color: colour, hideOverlap: true };
  return {
    x: { type: xType, axisLabel: { ...label, ...(xType === "value" ? { formatter: number } : {}) }, splitLine: { show: false }, min: "dataMin", max: "dataMax" },
    y: { type: "value", scale: true, axisLabel: { ...label, formatter: number }, splitLine: rule },
    legend: { bottom: 0, type: "scroll", textStyle: { color: colour }, pageTextStyle: { color: colour } },
  };
}
