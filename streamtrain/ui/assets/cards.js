// Cards of plots: what a plot is called, and its picture as a file for who asks for it.
import { echarts } from "nicegui-echart";

export function call(card, title) {
  if (card.ariaLabel === title) return;
  card.ariaLabel = title;
  card.querySelector("h2").textContent = title;
  for (const each of card.querySelectorAll(".st-taken > *")) each.ariaLabel = `${each.textContent} of ${title}`;
}

// `elements`: ids by chart; `nameOf`: a chart's file, of its name and its card
export function givePictures(elements, nameOf) {
  document.addEventListener("click", ({ target }) => {
    const card = target.closest(".st-png")?.closest("[data-chart]");
    if (!card) return;
    const name = card.dataset.chart;
    const behind = getComputedStyle(document.body).backgroundColor;
    const link = document.createElement("a");
    link.href = echarts.getInstanceByDom(document.getElementById(elements[name])).getDataURL({ type: "png", backgroundColor: behind });
    link.download = `${nameOf(name, card)}.png`;
    link.click();
  });
}
