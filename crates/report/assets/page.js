// Draws every specification of the page into the element before it. `data-figures` on the root element says when all are
// done, and each drawing says `drawn` or `failed`: the tests wait for that.
(async () => {
  "use strict";
  const options = { mode: "vega-lite", renderer: "svg", actions: false, ast: true, loader: { load: () => Promise.reject(new Error("this page loads nothing")) } };
  for (const specification of document.querySelectorAll("script.specification")) {
    const place = specification.previousElementSibling;
    try {
      await vegaEmbed(place, JSON.parse(specification.textContent), options);
      place.classList.add("drawn");
    } catch (error) {
      place.classList.add("failed");
      place.textContent = "This figure could not be drawn: " + error.message + " Its numbers are below.";
      console.error(error);
    }
  }
  document.documentElement.dataset.figures = "done";
})();
